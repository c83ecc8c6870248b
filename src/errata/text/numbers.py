"""Format numbers, sizes, durations and times for people. Pure."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from errata.text.escape import escape_text

_MINUS = "−"
_SCALES = ((Decimal(10) ** 12, "T"), (Decimal(10) ** 9, "G"), (Decimal(10) ** 6, "M"))


def format_exact(number: int) -> str:
    """A number with every digit.

    >>> format_exact(2204113)
    '2,204,113'
    """
    return f"{number:,}"


def format_count(number: int) -> str:
    """A rounded count.

    >>> format_count(9_000_000), format_count(640_000), format_count(1_234)
    ('9.0 M', '640 k', '1,234')
    """
    if number < 10_000:
        return format_exact(number)
    for limit, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if number >= limit:
            return f"{number / limit:.1f} {unit}"
    return "1.0 M" if round(number / 1000) >= 1000 else f"{number / 1000:.0f} k"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "day"), plural(45, "day"), plural(3, "entry", "entries")
    ('1 day', '45 days', '3 entries')
    """
    return f"{format_exact(number)} {noun if number == 1 else nouns or noun + 's'}"


def format_size(number: int) -> str:
    """Bytes in powers of ten.

    >>> format_size(1_900_000_000), format_size(512)
    ('1.9 GB', '512 B')
    """
    amount = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 999.5 or unit == "TB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.95 else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError(number)


def format_duration(seconds: float) -> str:
    """A time span.

    >>> format_duration(110), format_duration(0.4), format_duration(7500)
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


def format_clock(seconds: float) -> str:
    """Elapsed time.

    >>> format_clock(42), format_clock(3661)
    ('0:42', '1:01:01')
    """
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def format_money(usd: str) -> str:
    """Dollars and cents; text that is not a number is returned as it is.

    >>> format_money("0.0042"), format_money("1234.5")
    ('$0.00', '$1,234.50')
    """
    number = _parse_decimal(usd)
    return usd if number is None else f"${number:,.2f}"


def format_moment(instant: str) -> str:
    """An ISO instant to the minute, UTC.

    >>> format_moment("2026-02-15T09:41:07.123456+00:00"), format_moment("2026-02-15T09:41:07Z")
    ('2026-02-15 09:41', '2026-02-15 09:41')
    """
    return instant[:16].replace("T", " ")


def format_percent(part: float, whole: float) -> str:
    """A share; a share above zero never shows as 0 %, nor one below the whole as 100 %.

    >>> format_percent(1, 3), format_percent(1, 0), format_percent(1, 5000), format_percent(4999, 5000)
    ('33.3 %', '–', '< 0.1 %', '> 99.9 %')
    """
    if not whole:
        return "–"
    told = f"{100 * part / whole:.1f} %"
    return "< 0.1 %" if part and told == "0.0 %" else "> 99.9 %" if part != whole and told == "100.0 %" else told


def format_signed_percent(percentage: Decimal | str) -> str:
    """A signed change in percent.

    >>> format_signed_percent("-11.2041"), format_signed_percent(Decimal("0.02")), format_signed_percent("inf")
    ('−11.2 %', '+0.02 %', 'inf %')
    """
    number = _parse_decimal(str(percentage))
    if number is None:
        return f"{percentage} %"
    # one decimal place, unless that would show as no movement
    places = next((n for n in (1, 2, 4) if round(number, n)), 1)
    return f"{number:+.{places}f} %".replace("-", _MINUS)


def format_change(before: Decimal | str | None, after: Decimal | str | None) -> str:
    """The change between two numbers in percent. A percentage that was stored is rounded; rounding it again misleads.

    >>> format_change("100000", "100346"), format_signed_percent("0.35"), format_change("0", "1")
    ('+0.3 %', '+0.4 %', '–')
    """
    old, new = _parse_decimal(str(before)), _parse_decimal(str(after))
    return format_signed_percent((new - old) * 100 / abs(old)) if old and new is not None else "–"


def format_value(given: object) -> str:
    """A table cell: numbers with separators and every digit, None as ``null``.

    >>> format_value("1204.11"), format_value(None), format_value("A-10033"), format_value(-3), format_value("0012")
    ('1,204.11', 'null', 'A-10033', '−3', '0012')
    """
    if given is None:
        return "null"
    if isinstance(given, bool):
        return str(given).lower()
    text = str(given)
    number = _parse_decimal(text) if _is_plain_number(text) else None
    return escape_text(text) if number is None else f"{number:,f}".replace("-", _MINUS)


def format_verbatim(given: object) -> str:
    """A key cell with every character unchanged, so that it can be used in a query; None as ``null``.

    >>> format_verbatim("10033"), format_verbatim(-3), format_verbatim(None), format_verbatim(True)
    ('10033', '-3', 'null', 'true')
    """
    if given is None:
        return "null"
    return str(given).lower() if isinstance(given, bool) else escape_text(str(given))


def format_totals(before: str, after: str) -> tuple[str, str]:
    """Two totals, rounded unless rounding would hide that they differ.

    >>> format_totals("41200000.00", "38870000")
    ('41.20 M', '38.87 M')
    >>> format_totals("41200000.00", "41200000.01")
    ('41,200,000.00', '41,200,000.01')
    """
    old, new = _parse_decimal(before), _parse_decimal(after)
    if old is None or new is None:
        return format_value(before), format_value(after)
    short = _format_scaled(old), _format_scaled(new)
    return (format_value(before), format_value(after)) if short[0] == short[1] and old != new else short


def format_short(number: Decimal) -> str:
    """A short amount for an axis or a tile.

    >>> tuple(format_short(Decimal(number)) for number in ("41200000", "-1250.50", "950000", "0.92604"))
    ('41.2 M', '−1,250.5', '950 k', '0.926')
    """
    size = abs(number)
    for limit, unit in (*_SCALES, (Decimal(10_000), "k")):
        if size >= limit:
            scale = Decimal(1000) if unit == "k" else limit
            return _strip_zeros(f"{number / scale:,.2f}") + f" {unit}"
    return _strip_zeros(f"{number:,.2f}" if size >= 1 else f"{number:.4f}")


def _strip_zeros(text: str) -> str:
    digits = text.rstrip("0").rstrip(".") if "." in text else text
    return (digits or "0").replace("-", _MINUS)


def _format_scaled(number: Decimal) -> str:
    for limit, unit in _SCALES:
        if abs(number) >= limit:
            return f"{number / limit:,.2f} {unit}".replace("-", _MINUS)
    return f"{number:,f}".replace("-", _MINUS)


def _is_plain_number(text: str) -> bool:
    digits = text.removeprefix("-")
    # 0012 and 1e5 are more often names than numbers; digits of other scripts are a different value
    is_number = digits.isascii() and digits.replace(".", "", 1).isdecimal()
    return is_number and not (len(digits) > 1 and digits[0] == "0" and digits[1] != ".")


def _parse_decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
