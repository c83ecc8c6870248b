"""Render the audit chain, its heads, keys, erasure of people, and cleanup as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errata.cli.render.layout import flow, format_columns, render_warnings, wrap
from errata.model.partition import Grain, format_ranges
from errata.text.numbers import format_moment, plural

if TYPE_CHECKING:
    from errata.model.audit import AuditEntry
    from errata.model.product.erasure_place import Place
    from errata.views import (
        AuditView,
        CleanupView,
        ErasedView,
        ErasureProofView,
        ErasureWhereView,
        HeadsView,
        HeadView,
        KeyView,
        RedactionView,
    )
    from errata.views.audit import ForeignCommitView, GapsView, ProductGapsView


def render_audit(view: AuditView, width: int) -> list[str]:
    """Whether the chain is intact, and where it is not."""
    if view.ok:
        return [
            f"✓ {plural(view.entries, 'entry', 'entries')} verified, each linked to the one before",
            f"head {view.head}",
            *(_render_heads(view.heads, width) if view.heads else ()),
        ]
    where = f"entry {view.first_bad}" if view.first_bad is not None else "the chain"
    lines = wrap(f"{where} does not verify: {view.reason or 'no reason given'}", width, "✗ ")
    lines += wrap(f"{plural(view.entries, 'entry', 'entries')} read; those before it link up", width, "  ")
    return [*lines, f"head {view.head}"]


def _render_heads(heads: HeadsView, width: int) -> list[str]:
    count = plural(heads.checked, "exported head")
    if heads.newest is None:
        lines = ["! no head of this ledger was exported: a rebuilt log would not be detected"]
    elif heads.signatures == "checked":
        lines = wrap(f"agrees with {count}, signed by {', '.join(heads.signed_by)}", width, "✓ ")
    else:
        lines = wrap(f"agrees with {count}; signatures were not checked; --key FILE.pub checks them", width, "! ")
    if heads.newest is not None and heads.behind:
        lines += wrap(f"{plural(heads.behind, 'entry', 'entries')} after the newest of them", width, "  ")
    if heads.lag_seconds:
        word = "too long" if heads.late else "no alarm yet"
        said = f"a publication has been without an exported head for {heads.lag_seconds} s ({word}): errata audit head"
        lines += wrap(said, width, "! ")
    return lines


def render_gaps(view: GapsView, steps: Sequence[str], width: int) -> list[str]:
    """Foreign commits by product, open ones first, and the plans that close them."""
    lines = [line for one in view.products for line in _render_product_gaps(one, width)]
    return [*lines, *(["", *(f"next: {step}" for step in steps)] if steps else [])]


def _render_product_gaps(view: ProductGapsView, width: int) -> Iterator[str]:
    if view.adopted_at is None:
        yield from flow([f"  {view.product}", "not governed yet: nothing was planned"], width)
        return
    still_open = sum(bool(gap.open) for gap in view.gaps)
    told = plural(still_open, "open gap") if still_open else "no open gap"
    since = f"since {format_moment(view.adopted_at)} UTC"
    yield from flow([f"{'✗' if still_open else '✓'} {view.product}", view.table, since, told], width)
    if not view.complete:
        yield from wrap("older snapshots have expired: commits before those that are left are not seen", width, "  ! ")
    for gap in sorted(view.gaps, key=lambda one: not one.open):
        yield from _render_commit(gap, "✗" if gap.open else "✓", view.grain, width)
        if gap.closed_by:
            yield from wrap(f"closed by {', '.join(dict.fromkeys(gap.closed_by.values()))}", width, "      ")
        if gap.open and gap.closed_by:
            yield from wrap(f"open: {format_ranges(Grain(view.grain), gap.open)}", width, "      ")
    for commit in view.maintenance:
        yield from _render_commit(commit, "· maintenance", view.grain, width)


def _render_commit(commit: ForeignCommitView, sign: str, grain: str, width: int) -> list[str]:
    what = f"{commit.operation} by {commit.application}"
    where = format_ranges(Grain(grain), commit.partitions)
    return flow(
        [f"{sign} {format_moment(commit.at)} UTC", what, where, f"snapshot {commit.snapshot_id}"], width, "  ", "      "
    )


def render_head(view: HeadView, width: int) -> list[str]:
    """The head of the chain, and where it is stored."""
    word = "kept already" if view.already else "signed and kept"
    lines = [f"✓ head of entry {view.seq} {word}", f"hash {view.hash}", f"key  {view.key_id}"]
    return lines + [line for file in view.files for line in wrap(file, width, "in   ")]


def render_erased_person(view: ErasedView, width: int) -> list[str]:
    """What remains of an erased person."""
    word = "was erased already" if view.already else "erased"
    entries = f"{plural(view.entries, 'entry', 'entries')} of the audit under this pseudonym stay and verify"
    return [
        f"✓ {view.pseudonym} {word}",
        *wrap(entries, width, "  "),
        *render_warnings(view.warnings, width),
    ]


def render_key(view: KeyView, width: int) -> list[str]:
    """The new key pair, and what to do with it."""
    return [
        f"✓ key {view.key_id}",
        *wrap(f"private {view.private}", width, "  "),
        *wrap(f"public  {view.public}", width, "  "),
        *wrap("errata.yaml takes it as evidence: {key: FILE}; give the public key to the auditor", width, "next: "),
    ]


def render_log(entries: Sequence[AuditEntry], width: int) -> list[str]:
    """One paragraph per entry: when, who, what, then its content."""
    lines: list[str] = []
    for entry in entries:
        who = entry.actor.person + (" (single user)" if entry.actor.single_user else "")
        at = entry.at[:19].replace("T", " ")
        lines += flow([f"{entry.seq:>5}  {at}", who, entry.action, entry.run_id or ""], width, "", " " * 7)
        body = _format_body(entry.body)
        lines += wrap(body, width, " " * 7) if body else []
    return lines or ["no entries yet"]


def _format_body(body: Mapping[str, Any]) -> str:
    told = [f"{name}={_format_item(item)}" for name, item in body.items() if item not in (None, "", [], {}, ())]
    return "  ".join(told)


def _format_item(item: Any) -> str:
    if isinstance(item, (list, tuple)):
        if any(isinstance(piece, (list, tuple, Mapping)) for piece in item):
            return plural(len(item), "item")
        items = [str(piece) for piece in item]
        return ",".join(items) if len(items) <= 4 else f"{items[0]},…,{items[-1]} ({len(items)})"
    if isinstance(item, Mapping):
        if set(item) == {"from", "to"}:
            return f"{item['from']} → {item['to']}" if item["from"] else str(item["to"])
        return str(item.get("name") or plural(len(item), "field"))
    return str(item)


def render_cleanup(view: CleanupView, width: int) -> list[str]:
    """What is removed, and what stays because it is still needed."""
    if not view.removed:
        lines = ["nothing to clean up: everything Errata left behind is still needed"]
    else:
        word = "would be removed" if view.dry_run else "removed"
        lines = [f"{plural(len(view.removed), 'item')} {word}", *format_columns(_format_items(view.removed), width)]
    if view.kept:
        lines += [f"{plural(len(view.kept), 'item')} kept", *format_columns(_format_items(view.kept), width)]
    return lines


def _format_items(items: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    return [
        (item.get("ref", ""), "   ".join(str(text) for name, text in item.items() if name not in ("ref", "run_id")))
        for item in items
    ]


def render_erasure_places(view: ErasureWhereView, width: int) -> list[str]:
    """Places by what ends them, those that hold rows first; many of one kind and day on one line."""
    # late, because help must not load products
    from errata.model.product.erasure_place import HOLDS

    asked = plural(view.subjects, "subject")
    lines = [] if view.listed == view.subjects else [f"! {view.subjects - view.listed} of {asked} not on the list"]
    if not view.places:
        return [*lines, f"✓ nothing that Errata can look at shows {asked} on {view.day}"]
    lines.append(f"{plural(len(view.places), 'place')} can still show {asked} on {view.day}")
    by_end: dict[tuple[str, str], list[Place]] = {}
    for place in sorted(view.places, key=lambda one: (one.state != HOLDS, one.until or "")):
        by_end.setdefault((place.state, place.ends), []).append(place)
    for (state, ends), places in by_end.items():
        lines += wrap(f"{ends}{'' if state == HOLDS else ' (nobody can look there)'}:", width, "  ")
        lines += _list_places(places, width)
    if any(len(places) > 1 for places in _group_places(view.places).values()):
        lines += wrap("--json names each of them", width, "  ")
    return lines


def _group_places(places: Sequence[Place]) -> dict[tuple[str, str, str], list[Place]]:
    """Places by day, kind and table."""
    grouped: dict[tuple[str, str, str], list[Place]] = {}
    for place in places:
        grouped.setdefault((place.until or "", place.kind, place.name.partition("@")[0]), []).append(place)
    return grouped


def _list_places(places: Sequence[Place], width: int) -> Iterator[str]:
    rows = [
        (f"until {until}" if until else "no end by itself", kind if len(some) == 1 else f"{len(some)} × {kind}",
         table if len(some) > 1 else some[0].name)
        for (until, kind, table), some in _group_places(places).items()
    ]  # fmt: skip
    ends, kinds = (max(len(row[n]) for row in rows) for n in (0, 1))
    for end, kind, name in rows:
        yield from wrap(f"{end:{ends}}  {kind:{kinds}}  {name}", width, "    ", "        ")


def render_erasure_proof(view: ErasureProofView, width: int) -> list[str]:
    """What was recorded."""
    what = f"nothing but {plural(len(view.left), 'place')} that may stay" if view.left else "nothing"
    lines = wrap(
        f"{what} shows {plural(view.subjects, 'subject')} on {view.day}; audit entry {view.audit_seq}", width, "✓ "
    )
    left = [f"{place} ({why})" for place, why in view.left.items()]
    return lines + (flow(left, width, "  stays  ") if left else [])


def render_redaction(view: RedactionView, width: int) -> list[str]:
    """Which files were replaced, and which nobody can decide about."""
    if not view.sources:
        return wrap("no input of a recording names subjects", width, "! ")
    done = f"{plural(len(view.files), 'recorded file')} of {', '.join(view.sources)} redacted"
    if not view.files:
        done = f"found no rows of erased subjects in recorded files of {', '.join(view.sources)}; nothing was changed"
    lines = wrap(done, width, "✓ ")
    for one in view.files:
        become = f"now {one.redacted_as[:8]}" if one.redacted_as else "removed, because nothing reads it"
        lines += wrap(f"{one.source}/{one.name} ({one.file_id[:8]})  {one.rows} rows  {become}", width, "  ")
    for file_id, why in view.unproven.items():
        lines += wrap(f"{file_id[:8]} stays: {why}", width, "! ")
    return lines + (flow(view.expired_runs, width, "  expired  ") if view.expired_runs else [])
