"""Render decisions as text: quorum, release, break-glass, single-user mode. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, format_labelled, render_warnings, wrap
from errata.cli.render.throttle import format_partitions
from errata.text.numbers import format_moment, plural

if TYPE_CHECKING:
    from errata.views import BreakGlassView, QuorumView, ReleasedView, ReleaseView

SINGLE_USER = "single-user project: one person may do everything"


def describe_waiting(quorum: QuorumView | None, requester: str) -> str:
    """Whose approvals a plan waits for; empty if one approval by anyone else is enough."""
    if quorum is None or (quorum.needed == 1 and not quorum.lacks_owner and not quorum.void):
        return ""
    who = f" ({' or '.join(quorum.may)})" if quorum.may else ""
    return f"waiting for approval by others than {requester}{who}: {quorum.told}"


def render_quorum(quorum: QuorumView | None, width: int) -> list[str]:
    """Quorum status and approvals that no longer count; nothing if one approval was needed and given."""
    if quorum is None or (quorum.needed == 1 and quorum.met and not quorum.void):
        return []
    who = f"; ask {' or '.join(quorum.may)}" if quorum.may and not quorum.met else ""
    return [*wrap(quorum.told + who, width), *render_void_approvals(quorum, width)]


def render_void_approvals(quorum: QuorumView | None, width: int) -> list[str]:
    """Approvals that no longer count, and why."""
    void = quorum.void if quorum else {}
    return render_warnings((f"the approval of {person} {why}" for person, why in void.items()), width, "  ! ")


def render_break_glass(broken: BreakGlassView | None, width: int) -> list[str]:
    """Who used break-glass, and whether the alarm went out."""
    if broken is None:
        return []
    when = f"{format_moment(broken.at)} UTC"
    said = f"BREAK-GLASS: {broken.person} decided alone to {broken.deed}, {when}: {broken.why}"
    return [*wrap(said, width, "! "), *wrap(f"alarm {broken.alarm}", width, "  ")]


def render_mode(single_user: bool) -> list[str]:
    """The single-user notice, shown with every decision."""
    return [SINGLE_USER] if single_user else []


def render_released(digest: str | None, release: ReleasedView | None, width: int) -> list[str]:
    """The current release digest, and the release given."""
    lines = [f"release  {digest}"] if digest else []
    if release is None:
        return lines
    lines += flow([_describe_release(release), f"{format_moment(release.at)} UTC"], width)
    lines += wrap(release.note, width, "  note   ") if release.note else []
    lines += [f"  sha256 {release.digest}"] if release.digest != digest else []
    lines += wrap(f"it no longer counts: {release.void}", width, "  ! ") if release.void else []
    return lines


def _describe_release(release: ReleasedView) -> str:
    """Who released; a release by ``errata publish`` counts as published only once the publication landed."""
    if release.kind == "automatic":
        return "released by a clean gate"
    told = f"released by {release.person}"
    if release.kind == "publish" and release.published_by is None:
        return f"{told} with errata publish, which has not landed"
    return f"{told}, who published" if release.kind == "publish" and release.published_by == release.person else told


def render_release(view: ReleaseView, width: int) -> list[str]:
    """What is released, and by whom."""
    lines = flow([view.run_id, view.product, plural(len(view.partitions), "partition")], width)
    lines += format_labelled("scope", [format_partitions(view.grain, view.partitions)], width)
    lines += format_labelled("candidate", [view.candidate, f"snapshot {view.snapshot_id}"], width)
    lines += format_labelled("", [view.candidate_digest], width)
    words = {"ok": "ok", "warn": "warned", "block": "blocked"}
    counted = [f"{view.checks[level]} {word}" for level, word in words.items() if view.checks.get(level)]
    lines += format_labelled("verdict", [", ".join(counted) or "no findings"], width)
    for one in view.accepted:
        lines += format_labelled("accepted", [f"{one['check']} by {one['person']}: {one['why']}"], width)
    lines += format_labelled("manifest", [view.manifest_digest], width)
    lines += ["", f"release  {view.release_digest}"]
    if view.release is None:
        return [*lines, *render_mode(view.single_user)]
    if view.already:
        lines.append("released before, nothing changed")
    lines += render_released(None, view.release, width)[:1]
    lines += wrap(view.release.note, width, "  note   ") if view.release.note else []
    return [*lines, f"state: {view.state.replace('_', ' ')}", *render_mode(view.single_user)]
