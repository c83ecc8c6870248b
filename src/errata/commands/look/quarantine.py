"""`errata quarantine`: rows that a run set aside, with reasons and samples. Reads only, and never starts a JVM."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errata.gate.row_accounts import ROW_COUNTERS, list_adopted_attempts, may_have_quarantine, read_row_counts
from errata.model.diff import mask_row
from errata.model.product.erasure import format_erased_count, is_hidden
from errata.model.refs import quarantine_table
from errata.views import QuarantineReason, QuarantineView, SetAsideRow

if TYPE_CHECKING:
    from errata.ledger import AttemptRecord
    from errata.model.audit import Actor
    from errata.model.manifest import InputPin, Manifest
    from errata.ports.tables import QuarantinedRow
    from errata.workspace import Workspace

_MAX_EXACT_INT = 2**53  # larger integers may lose digits in a JSON reader


def read_quarantine(workspace: Workspace, actor: Actor, run_id: str, sample: int) -> QuarantineView:
    """Counts by input and reason, and sample rows with classified columns masked."""
    from errata.gate.diff.candidate_diff import list_masked_columns

    run = workspace.ledger.runs.get(run_id)
    manifest = workspace.ledger.runs.manifest(run.run_id, actor)
    adopted, hidden = list_adopted_attempts(workspace, run.run_id), list_masked_columns(workspace, manifest)
    table = quarantine_table(manifest.target.table, run.run_id)
    names = [attempt.attempt_id for attempt in adopted]
    is_there = may_have_quarantine(manifest, adopted)
    counts = workspace.engines.quarantine.counts(table, names) if is_there else ()
    rows = workspace.engines.quarantine.sample(table, names, sample) if is_there and sample else ()
    grouped: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    for count in counts:
        grouped[count.input, count.kind, count.reason][count.partition] = count.rows
    return QuarantineView(
        run_id=run.run_id,
        product=run.product,
        state=run.state.value,
        grain=manifest.target.grain.value,
        table=table if is_there and workspace.engines.quarantine.exists(table) else None,
        inputs=rows_by_input(adopted, manifest),
        reasons=tuple(
            QuarantineReason(source, kind, reason, sum(found.values()), tuple(sorted(found)))
            for (source, kind, reason), found in sorted(grouped.items())
        ),
        rows=tuple(_row_view(row, manifest, hidden) for row in rows),
        masked=hidden,
    )


_SUPPRESSED = "rows_suppressed"


def rows_by_input(adopted: Sequence[AttemptRecord], manifest: Manifest) -> Mapping[str, Mapping[str, int | str]]:
    """Row counts per input so far: in, used, quarantined, suppressed, set aside.

    A small number of suppressed rows could point to an erased person: it is not shown, nor what it follows from.
    """
    totals: dict[str, dict[str, int]] = {}
    for attempt in adopted:
        for source, fates in read_row_counts(attempt).items():
            total = totals.setdefault(source, {})
            for what, rows in fates.items():
                total[what] = total.get(what, 0) + rows
    # a merge counts the prior rows that it leaves out under the name of the target
    named = [pin.name for pin in manifest.inputs if pin.subjects] + [manifest.target.table]
    hidden = {name for name in named if is_hidden(totals.get(name, {}).get(_SUPPRESSED, 0))}
    return {
        source: {
            what: format_erased_count(total[what]) if what == _SUPPRESSED and source in hidden else total[what]
            for what in ROW_COUNTERS
            if what in total and not (what == "rows_used" and source in hidden)
        }
        for source, total in sorted(totals.items())
    }


def _row_view(row: QuarantinedRow, manifest: Manifest, hidden: tuple[str, ...]) -> SetAsideRow:
    pin = next((pin for pin in manifest.inputs if pin.name == row.input), None)
    return SetAsideRow(
        row.input, row.partition, row.kind, row.reason, row.chunk_id, row.origin, _mask_row(row.row, pin, hidden)
    )


def _mask_row(text: str, pin: InputPin | None, classified: tuple[str, ...]) -> Mapping[str, Any]:
    """The row as data; a column is masked if its name, or the name that any era renames it to, is classified."""
    hidden = {name.lower() for name in classified}
    renamed = {old for era in (pin.eras if pin else ()) for old, new in era.rename.items() if new.lower() in hidden}
    # keep numbers as text where a float would round them, here or in a JSON reader
    values: dict[str, Any] = json.loads(text, parse_float=str, parse_int=_parse_exact_int)
    return mask_row(values, [name for name in values if name.lower() in hidden or name in renamed])


def _parse_exact_int(digits: str) -> int | str:
    return int(digits) if abs(int(digits)) < _MAX_EXACT_INT else digits
