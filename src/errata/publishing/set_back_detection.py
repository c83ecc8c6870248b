"""Find publications that main no longer holds. Reads only and never starts a JVM.

Errata only ever adds commits to main, so if main's head does not descend from a publication, another tool set main back
or replaced the table. Where history has expired, the files of the partitions decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from errata.errors import ErrataError
from errata.ledger import AcceptanceRecord, Ledger, PublicationRecord, RunRecord
from errata.model.manifest import Manifest
from errata.model.partition import EPOCH, format_partition_list, sort_oldest_first
from errata.model.side_tables import find_side_table
from errata.model.table import Departure
from errata.publishing.intent import Intent
from errata.views import SetBackView
from errata.workspace import Engines


def find_set_backs(
    ledger: Ledger, engines: Engines, table: str, partitions: Collection[str] | None = None
) -> tuple[SetBackView, ...]:
    """Publications and rollbacks that are current for these partitions in the ledger but no longer on main."""
    tops = ledger.partitions.accepted(table, partitions)
    wanted = {pub_id for top in tops.values() for pub_id in _relevant_publications(top)}
    publications = {pub_id: ledger.publications.get(pub_id) for pub_id in sorted(wanted)}
    manifests = {run: ledger.runs.manifest(run) for run in {one.run_id for one in publications.values()}}
    left = _find_departures(engines, publications.values(), manifests)
    lost: dict[str, list[str]] = {}
    for name, top in tops.items():
        # newest first: if it is not on main, neither its rows nor those it put back are shown
        gone = next((pub_id for pub_id in _relevant_publications(top) if pub_id in left), None)
        if gone is not None:
            lost.setdefault(gone, []).append(name)
    found = []
    for pub_id, names in lost.items():
        publication, departure = publications[pub_id], left[pub_id]
        manifest = manifests[publication.run_id]
        missing = _find_missing_partitions(ledger, engines, publication, manifest, names, is_sure=departure.is_sure)
        if missing:
            found.append(_set_back_view(engines, publication, manifest, departure, missing))
    return tuple(found)


def find_run_set_backs(
    ledger: Ledger, engines: Engines, run: RunRecord
) -> tuple[tuple[SetBackView, ...], tuple[str, ...]]:
    """Published partitions of this run that main no longer holds, and a warning if the table cannot be read."""
    deeds = {publication.pub_id for publication in ledger.publications.list(run.run_id)}
    if not deeds:
        return (), ()
    # partitions that another run has published since belong to the status of that run
    own = {
        name
        for name, top in ledger.partitions.accepted(run.table, run.partitions).items()
        if top.run_id == run.run_id or top.pub_id in deeds
    }
    if not own:
        return (), ()
    try:
        return find_set_backs(ledger, engines, run.table, own), ()
    except ErrataError as error:
        return (), (f"whether main still holds what was published is not known: {error.message}",)


def _relevant_publications(top: AcceptanceRecord) -> tuple[str, ...]:
    """The publication or rollback that last changed a partition, and the publication whose rows it shows."""
    return tuple(dict.fromkeys(pub_id for pub_id in (top.pub_id, top.origin_pub_id) if pub_id))


def _find_departures(
    engines: Engines, publications: Iterable[PublicationRecord], manifests: Mapping[str, Manifest]
) -> dict[str, Departure]:
    by_table: dict[str, dict[str, str]] = {}
    for one in publications:
        place = find_side_table(manifests[one.run_id]) or one.table
        by_table.setdefault(place, {})[one.pub_id] = one.result_snapshot_id or ""
    found: dict[str, Departure] = {}
    for place, snapshots in by_table.items():
        gone = engines.history.left(place, set(snapshots.values()))
        found |= {pub_id: gone[snapshot] for pub_id, snapshot in snapshots.items() if snapshot in gone}
    return found


def _find_missing_partitions(
    ledger: Ledger,
    engines: Engines,
    publication: PublicationRecord,
    manifest: Manifest,
    names: Sequence[str],
    *,
    is_sure: bool,
) -> tuple[str, ...]:
    """Partitions that no longer hold the published files.

    Where history does not prove that main left the publication, only partitions that hold their earlier files again.
    """
    target = manifest.target
    if find_side_table(manifest):
        return tuple(names) if is_sure else ()
    intent = Intent.from_dict(ledger.publications.detail(publication.pub_id))
    live = engines.targets.read_target(target.table, target.column, target.grain, names).expected
    missing = []
    for name in names:
        paths = {file.path for file in live.get(name, ())}
        added, removed = ({file.path for file in sets.get(name, ())} for sets in (intent.add, intent.remove))
        holds = added <= paths if added else not paths
        is_back = bool(removed) and removed <= paths and not added & paths
        if is_back or (is_sure and not holds):
            missing.append(name)
    return sort_oldest_first(target.grain, missing)


def _set_back_view(
    engines: Engines,
    publication: PublicationRecord,
    manifest: Manifest,
    departure: Departure,
    partitions: tuple[str, ...],
) -> SetBackView:
    place, snapshot = find_side_table(manifest) or publication.table, publication.result_snapshot_id or ""
    listed = format_partition_list(manifest.target.grain, partitions)
    kept = find_side_table(manifest) is None and engines.pins.snapshot_exists(place, snapshot)
    # planning the same request again would give the same run, so the command names the run it supersedes
    instead = f"--restore {snapshot}" if kept else f"--supersede {publication.run_id}"
    at = departure.at_ms
    return SetBackView(
        table=place,
        grain=manifest.target.grain.value,
        partitions=partitions,
        run_id=publication.run_id,
        publication_id=publication.pub_id,
        kind=publication.kind,
        at=publication.settled_at or publication.intended_at,
        snapshot_id=snapshot,
        set_back_at=None if at is None else (EPOCH + timedelta(milliseconds=at)).isoformat(timespec="seconds"),
        main_snapshot_id=departure.snapshot_id,
        next=f'errata plan {manifest.product} --partitions {listed} {instead} --reason "…"',
    )
