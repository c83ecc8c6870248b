"""Check that every input row is accounted for, and that not too many are in quarantine. Pure.

``accounting``: rows in = used + quarantined + suppressed, exactly, per partition and per chunk, and every other count
of these rows agrees. ``quarantine``: the limits of the product file, per partition and over the run; an input without
limits warns at the first row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from errata.gate.verdict.findings import BLOCK, OK, SEVERITY, WARN, CandidateSummary, MeasurementIndex
from errata.gate.verdict.row_account import CHUNK, RowAccount, build_account, chunk_measure
from errata.gate.verdict.thresholds import Limit
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import InputPin, Manifest
from errata.model.partition import WHOLE
from errata.model.product.eras import QUARANTINE, RowLimits
from errata.model.product.erasure import format_erased_count, is_hidden
from errata.ports.measure import ROWS_IN, Measurement, input_scope
from errata.views.checks import CheckResult

ACCOUNTING = "accounting"
_NOT_COUNTED = "was not counted"
_SET_ASIDE = "rows_set_aside "


def judge_rows(manifest: Manifest, numbers: MeasurementIndex, facts: CandidateSummary) -> Iterator[CheckResult]:
    """Judge the inputs from which rows were, or could have been, taken out."""
    books = [book for pin in manifest.inputs if (book := _InputAccounts(pin, manifest, numbers)).is_open]
    if not books:
        return
    for partition in (*manifest.partitions, WHOLE):
        concerned = [book for book in books if partition in book.accounts]
        if concerned:
            yield _judge_accounts(partition, concerned, facts)
    if not facts.is_trial:
        yield _judge_chunks(books)
    for book in books:
        for name in book.foreign:
            message = f"{book.pin.name} has rows of {name}, which was not asked for"
            yield CheckResult(ACCOUNTING, name, None, BLOCK, message)
    for book in books:
        yield from _judge_limits(book, manifest)


class _InputAccounts:
    """Row accounts of one input, by partition."""

    def __init__(self, pin: InputPin, manifest: Manifest, numbers: MeasurementIndex) -> None:
        known: dict[str, list[Measurement]] = defaultdict(list)
        for (scope, partition, _), one in numbers.by_place.items():
            if scope == input_scope(pin.name):
                known[partition].append(one)
        self.pin = pin
        self.rule = rule_of_pin(pin, manifest.target.grain).without_look
        self.numbers = numbers
        planned = (WHOLE,) if pin.partition is None else manifest.partitions
        self.accounts = {name: build_account(numbers, pin.name, name, known) for name in planned}
        self.foreign = sorted(
            name for name, listed in known.items() if name not in planned and any(one.name == ROWS_IN for one in listed)
        )
        # rows that a transform reported as set aside must be accounted for even if the quarantine table has none
        said = (one for one in known[""] if one.name.startswith(_SET_ASIDE) and int(one.value or 0))
        kept = any(account.kept for account in self.accounts.values())
        self.is_open = pin.is_counted or kept or any(said)

    def rows(self, partition: str) -> int | None:
        """Row count of a partition: its account's, or else the measured row count."""
        account = self.accounts[partition]
        if account.read is not None:
            return account.read
        return self.numbers.rows(input_scope(self.pin.name), partition)

    def count_held(self, partition: str) -> int:
        """Rows of a partition according to the files themselves."""
        names = (partition,) if partition == WHOLE else self.rule.list_reads([partition])
        return sum(self.pin.counts.get(name, 0) for name in names)

    def chunk_of(self, partition: str) -> str | None:
        """The chunk that computed a partition."""
        found = self.numbers.get(input_scope(self.pin.name), partition, CHUNK)
        return found.value if found else None

    def counted_by(self, chunk: str, what: str) -> int | None:
        """A row counter of a chunk, counted while it ran."""
        found = self.numbers.get(input_scope(self.pin.name), "", chunk_measure(what, chunk))
        return None if found is None else int(found.value or 0)


def _judge_accounts(partition: str, books: list[_InputAccounts], facts: CandidateSummary) -> CheckResult:
    told: list[str] = []
    wrong: list[str] = []
    for book in books:
        account, name = book.accounts[partition], book.pin.name
        told.append(f"{name}: {_describe_account(account)}")
        wrong += [f"{name}: {problem}" for problem in _iterate_problems(book, partition, facts)]
    place = None if partition == WHOLE else partition
    total = sum(book.accounts[partition].quarantined + book.accounts[partition].set_aside for book in books)
    return CheckResult(ACCOUNTING, place, str(total), BLOCK if wrong else OK, "; ".join(wrong or told))


def _describe_account(account: RowAccount) -> str:
    if not account.is_measured:
        return f"the transform set {account.set_aside} rows aside"
    aside = f", of which the transform set {account.set_aside} aside" if account.set_aside else ""
    if is_hidden(account.erased):
        # neither the count nor what it can be computed from
        others = account.suppressed - account.erased
        return (
            f"{account.read} rows in, of which {format_erased_count(account.erased)} are of erased subjects, "
            f"{account.quarantined} quarantined and {others} suppressed by rules; the others used{aside}"
        )
    return (
        f"{account.read} rows in = {account.used} used{aside} + {account.quarantined} quarantined + "
        f"{account.suppressed} suppressed"
    )


def _iterate_problems(book: _InputAccounts, partition: str, facts: CandidateSummary) -> Iterator[str]:
    pin, account = book.pin, book.accounts[partition]
    if not pin.is_counted:
        return
    if account.read is None or account.used is None:
        yield _NOT_COUNTED
        return
    if account.read != account.used + account.quarantined + account.suppressed:
        yield f"{_describe_account(account)}, which does not balance"
    if pin.counts and account.read != (held := book.count_held(partition)):
        yield f"{account.read} rows were read, its files hold {held} by their own account"
    if account.set_aside > account.used:
        yield f"the transform set {account.set_aside} rows aside, of {account.used} that are counted as used"
    if facts.is_trial:
        return
    expected = {reason: rows for reason, rows in account.out.get(QUARANTINE, {}).items() if rows}
    for reason in sorted({*expected, *account.in_table}):
        if expected.get(reason, 0) != account.in_table.get(reason, 0):
            yield (
                f"{reason}: {expected.get(reason, 0)} rows were taken out, the quarantine table has "
                f"{account.in_table.get(reason, 0)}"
            )


def _judge_chunks(books: list[_InputAccounts]) -> CheckResult:
    """Compare the chunks' counts, taken in a second read of their input files, with the gate's counts."""
    wrong: list[str] = []
    seen: set[str] = set()
    for book in books:
        totals: dict[str | None, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for partition, account in book.accounts.items():
            of_chunk = totals[book.chunk_of(partition)]
            of_chunk["rows_set_aside"] += account.set_aside
            if book.pin.is_counted:
                of_chunk["rows_in"] += account.read or 0
                of_chunk["rows_used"] += account.used or 0
                of_chunk["rows_quarantined"] += account.quarantined
                of_chunk["rows_suppressed"] += account.suppressed
        for chunk, expected in totals.items():
            if chunk is None:
                wrong.append(f"{book.pin.name}: no chunk says that it computed some of its partitions")
                continue
            seen.add(chunk)
            for what, rows in expected.items():
                counted = book.counted_by(chunk, what)
                if counted is None and what == "rows_set_aside":
                    counted = 0
                if counted != rows:
                    found = _NOT_COUNTED if counted is None else f"was {counted}"
                    words = what.replace("_", " ")
                    told = f"{found} when chunk {chunk} ran, is {rows} at the gate"
                    if book.pin.subjects:  # a difference of two counts could point to one person
                        told = f"when chunk {chunk} ran is not what the gate counts"
                    wrong.append(f"{book.pin.name}: {words} {told}")
    if wrong:
        return CheckResult(ACCOUNTING, None, None, BLOCK, "; ".join(wrong))
    message = f"{len(seen)} chunks counted the same rows of the pinned input, by the same rules, as the gate does"
    return CheckResult(ACCOUNTING, None, None, OK, message)


def _judge_limits(book: _InputAccounts, manifest: Manifest) -> Iterator[CheckResult]:
    limits = next((one for one in manifest.row_limits if one.name == book.pin.name), None)
    out = {name: account.quarantined + account.set_aside for name, account in book.accounts.items()}
    rows = {name: book.rows(name) for name in out}
    for partition, count in out.items():
        place = None if partition == WHOLE else partition
        yield _judge_limit(book.pin.name, place, count, rows[partition], limits)
    if WHOLE not in out:
        known = [each for each in rows.values() if each is not None]
        total = sum(known) if len(known) == len(rows) else None
        yield _judge_limit(book.pin.name, None, sum(out.values()), total, limits)


def _judge_limit(
    source: str, partition: str | None, count: int, rows: int | None, limits: RowLimits | None
) -> CheckResult:
    limits = limits or RowLimits(source, warn="0")
    of = "" if rows is None else f" of {rows}"
    levels = [OK]
    words = []
    for text, level in ((limits.warn, WARN), (limits.block, BLOCK)):
        if text is None:
            continue
        limit = Limit.parse(text)
        words.append(f"{'warns' if level == WARN else 'blocks'} above {limit.text}")
        if limit.is_percent and rows is None:
            # a share of an unknown total cannot be shown to be within the limit
            levels += [level] if count else []
            words[-1] += ", but the total row count is missing" if count else ""
        elif limit.is_exceeded(Decimal(count), Decimal(rows or 0)):
            levels.append(level)
    where = f"{source}: {count}{of} rows in quarantine" + ("" if partition else " over the run")
    worst = max(levels, key=SEVERITY.index)
    return CheckResult(QUARANTINE, partition, str(count), worst, f"{where}; {', '.join(words)}")
