"""Numbers, sizes, durations and times as people read them. Pure."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from errata.text.escape import visible

_MINUS = "−"
_SCALES = ((Decimal(10) ** 12, "T"), (Decimal(10) ** 9, "G"), (Decimal(10) ** 6, "M"))


def exact(number: int) -> str:
    """Every digit.

    >>> exact(2204113)
    '2,204,113'
    """
    return f"{number:,}"


def count(number: int) -> str:
    """A count at a glance.

    >>> count(9_000_000), count(640_000), count(1_234)
    ('9.0 M', '640 k', '1,234')
    """
    if number < 10_000:
        return exact(number)
    for limit, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if number >= limit:
            return f"{number / limit:.1f} {unit}"
    return "1.0 M" if round(number / 1000) >= 1000 else f"{number / 1000:.0f} k"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "day"), plural(45, "day"), plural(3, "entry", "entries")
    ('1 day', '45 days', '3 entries')
    """
    return f"{exact(number)} {noun if number == 1 else nouns or noun + 's'}"


def size(number: int) -> str:
    """Bytes in powers of ten.

    >>> size(1_900_000_000), size(512)
    ('1.9 GB', '512 B')
    """
    amount = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 999.5 or unit == "TB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.95 else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError(number)


def duration(seconds: float) -> str:
    """A time span.

    >>> duration(110), duration(0.4), duration(7500)
    ('1 m 50 s', '0.4 s', '2 h 05 m')
    """
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds % 1 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60:02d} m"


def clock(seconds: float) -> str:
    """A running time.

    >>> clock(42), clock(3661)
    ('0:42', '1:01:01')
    """
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def money(usd: str) -> str:
    """Dollars and cents; what is not a number stays as it is.

    >>> money("0.0042"), money("1234.5")
    ('$0.00', '$1,234.50')
    """
    number = _decimal(usd)
    return usd if number is None else f"${number:,.2f}"


def moment(instant: str) -> str:
    """An ISO instant to the minute, UTC.

    >>> moment("2026-02-15T09:41:07.123456+00:00"), moment("2026-02-15T09:41:07Z")
    ('2026-02-15 09:41', '2026-02-15 09:41')
    """
    return instant[:16].replace("T", " ")


def percent(part: float, whole: float) -> str:
    """A share; what is not nothing never reads as nothing, nor what is not all as all.

    >>> percent(1, 3), percent(1, 0), percent(1, 5000), percent(4999, 5000)
    ('33.3 %', '–', '< 0.1 %', '> 99.9 %')
    """
    if not whole:
        return "–"
    told = f"{100 * part / whole:.1f} %"
    return "< 0.1 %" if part and told == "0.0 %" else "> 99.9 %" if part != whole and told == "100.0 %" else told


def signed_percent(percentage: Decimal | str) -> str:
    """How far something moved.

    >>> signed_percent("-11.2041"), signed_percent(Decimal("0.02")), signed_percent("inf")
    ('−11.2 %', '+0.02 %', 'inf %')
    """
    number = _decimal(str(percentage))
    if number is None:
        return f"{percentage} %"
    # one place, unless that would read as no movement
    places = next((n for n in (1, 2, 4) if round(number, n)), 1)
    return f"{number:+.{places}f} %".replace("-", _MINUS)


def value(given: object) -> str:
    """One cell: numbers with separators and every digit, absence as ``null``.

    >>> value("1204.11"), value(None), value("A-10033"), value(-3), value("0012")
    ('1,204.11', 'null', 'A-10033', '−3', '0012')
    """
    if given is None:
        return "null"
    if isinstance(given, bool):
        return str(given).lower()
    text = str(given)
    number = _decimal(text) if _is_plain_number(text) else None
    return visible(text) if number is None else f"{number:,f}".replace("-", _MINUS)


def verbatim(given: object) -> str:
    """One cell of a key, every character as it is, so that it can be asked for again; absence as ``null``.

    >>> verbatim("10033"), verbatim(-3), verbatim(None), verbatim(True)
    ('10033', '-3', 'null', 'true')
    """
    if given is None:
        return "null"
    return str(given).lower() if isinstance(given, bool) else visible(str(given))


def moved(before: str, after: str) -> tuple[str, str]:
    """Two totals at a glance, and in full when the glance would hide that they differ.

    >>> moved("41200000.00", "38870000")
    ('41.20 M', '38.87 M')
    >>> moved("41200000.00", "41200000.01")
    ('41,200,000.00', '41,200,000.01')
    """
    old, new = _decimal(before), _decimal(after)
    if old is None or new is None:
        return value(before), value(after)
    short = _short(old), _short(new)
    return (value(before), value(after)) if short[0] == short[1] and old != new else short


def glance(number: Decimal) -> str:
    """An amount for an axis or a tile.

    >>> glance(Decimal("41200000")), glance(Decimal("-1250.50")), glance(Decimal("950000")), glance(Decimal("0.92604"))
    ('41.2 M', '−1,250.5', '950 k', '0.926')
    """
    size = abs(number)
    for limit, unit in (*_SCALES, (Decimal(10_000), "k")):
        if size >= limit:
            scale = Decimal(1000) if unit == "k" else limit
            return _plain(f"{number / scale:,.2f}") + f" {unit}"
    return _plain(f"{number:,.2f}" if size >= 1 else f"{number:.4f}")


def _plain(text: str) -> str:
    digits = text.rstrip("0").rstrip(".") if "." in text else text
    return (digits or "0").replace("-", _MINUS)


def _short(number: Decimal) -> str:
    for limit, unit in _SCALES:
        if abs(number) >= limit:
            return f"{number / limit:,.2f} {unit}".replace("-", _MINUS)
    return f"{number:,f}".replace("-", _MINUS)


def _is_plain_number(text: str) -> bool:
    digits = text.removeprefix("-")
    # 0012 and 1e5 are names more often than numbers; digits of other scripts are another value
    is_number = digits.isascii() and digits.replace(".", "", 1).isdecimal()
    return is_number and not (len(digits) > 1 and digits[0] == "0" and digits[1] != ".")


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
