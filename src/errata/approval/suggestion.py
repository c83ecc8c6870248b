"""Make suggested commands ready to paste: a person who may type them, and partitions. Reads the project and the ledger.

The acting person is named if the command is theirs to type, otherwise the first who has the role and is not kept from
deciding. A service account is never named for what a person decides. In a single-user project nobody has to be named.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from errata.approval.permissions import is_requester, list_owners
from errata.approval.quorum import build_member_check, evaluate_quorum
from errata.errors import NotFound
from errata.ledger import CampaignRecord, RunRecord
from errata.model.audit import Actor
from errata.model.campaign.campaign_manifest import PREFIX
from errata.model.partition import format_partition_list
from errata.model.product import Role
from errata.workspace import Workspace

_ROLES = {
    "plan": (Role.REQUESTER,),
    "try": (Role.REQUESTER,),
    "approve": (Role.APPROVER,),
    "decline": (Role.APPROVER,),
    "run": (Role.OPERATOR,),
    "pause": (Role.OPERATOR,),
    "resume": (Role.OPERATOR,),
    "cancel": (Role.OPERATOR,),
    "retry": (Role.OPERATOR,),
    "validate": (Role.OPERATOR, Role.APPROVER),
    "release": (Role.PUBLISHER,),
    "publish": (Role.PUBLISHER,),
    "rollback": (Role.PUBLISHER,),
    "deliver": (Role.OPERATOR, Role.PUBLISHER),
    "outbox retry": (Role.OPERATOR, Role.PUBLISHER),
    "outbox waive": (Role.PUBLISHER, Role.APPROVER),
}
"""Commands about a run, a product or an item that need a person, and the role for each."""
_ABOUT_PRODUCTS = ("plan", "try", "deliver")
_ABOUT_ITEMS = ("outbox retry", "outbox waive")
_ABOUT_OTHERS = (*_ABOUT_ITEMS, "plan", "try")
_NOT_THE_REQUESTER = ("approve", "decline", "release", "publish")
_BY_PERSONS = ("approve", "decline", "release", "rollback", "resume", "outbox waive")
"""Commands that service accounts are refused, always or in some states of a run."""
_COMMAND = re.compile(
    rf"\berrata (?P<verb>{'|'.join(_ROLES)}) (?P<about>[\w.-]*\w)(?P<rest>(?:(?!\berrata |&&|;|\n).)*)"
)
_MORE_ITEMS = re.compile(r"(?: \d+)*(?!\S)")
_DELIVER_ALL = re.compile(r"\berrata deliver(?=$|[,;)\n]| --(?!as\b))")
_SPEAK = re.compile(
    r"\berrata (?P<verb>consumers confirm|ack) [\w.-]*\w (?P<consumer>[\w.-]*\w)(?![.-]*\w| --as\b| --hold\b)"
)
"""Commands with which the owner of a consumer speaks for it."""
_SAME_SCOPE = re.compile(r"^ …(?= --supersede (?P<run>[\w-]+))")


def complete_commands(workspace: Workspace, actor: Actor, text: str) -> str:
    """The text with its commands completed: ``--as NAME`` where a person is needed and none is named.

    A plan of ``…`` in place of another run gets the partitions of that run. Only commands about an existing run or
    product are changed, and ``errata deliver``, which may be about everything; other text that mentions a command is
    left as it is.
    """

    def complete(found: re.Match[str]) -> str:
        verb, about, rest = found["verb"], found["about"], found["rest"]
        run = _find_run(workspace, about) or _find_campaign(workspace, about) if verb not in _ABOUT_OTHERS else None
        is_product = verb in _ABOUT_PRODUCTS and about in workspace.project.products
        if run is None and not is_product and verb not in _ABOUT_ITEMS:
            return found[0]
        if verb in _ABOUT_ITEMS and (more := _MORE_ITEMS.match(rest)):
            about, rest = f"{about}{more[0]}", rest[more.end() :]
        rest = _fill_scope(workspace, actor, rest)
        name = "" if "--as " in rest else _choose_person(workspace, actor, verb, rest, run)
        return f"errata {verb} {about}{_format_as(name)}{rest}"

    def name_owner(found: re.Match[str]) -> str:
        return found[0] + _format_as(_choose_owner(workspace, actor, found["verb"], found["consumer"]))

    text = _SPEAK.sub(name_owner, _COMMAND.sub(complete, text))
    return _DELIVER_ALL.sub(lambda found: found[0] + _format_as(_choose_person(workspace, actor, "deliver")), text)


def _format_as(name: str) -> str:
    return f" --as {shlex.quote(name)}" if name else ""


def _choose_owner(workspace: Workspace, actor: Actor, verb: str, consumer: str) -> str:
    """Who speaks for a consumer: its owner; a stream without a known one is confirmed by a person who delivers."""
    declared, project = workspace.project.consumers.get(consumer), workspace.project
    owners = list_owners(project, declared.owner) if declared else ()
    if not owners or project.single_user:
        return _choose_person(workspace, actor, "deliver", by_persons=True) if verb != "ack" else ""
    return actor.person if actor.person in owners else owners[0]


def _find_run(workspace: Workspace, text: str) -> RunRecord | None:
    """The run with exactly this id."""
    try:
        found = workspace.ledger.runs.get(text)
    except NotFound:
        return None
    return found if found.run_id == text else None


def _find_campaign(workspace: Workspace, text: str) -> CampaignRecord | None:
    """The campaign with exactly this id."""
    found = workspace.ledger.campaigns.find(text) if text.startswith(PREFIX) else None
    return found if found is not None and found.campaign_id == text else None


def _fill_scope(workspace: Workspace, actor: Actor, rest: str) -> str:
    scope = _SAME_SCOPE.match(rest)
    run = _find_run(workspace, scope["run"]) if scope else None
    if run is None:
        return rest
    manifest = workspace.ledger.runs.manifest(run.run_id, actor)
    return _SAME_SCOPE.sub(f" --partitions {format_partition_list(manifest.target.grain, manifest.partitions)}", rest)


def _choose_person(
    workspace: Workspace,
    actor: Actor,
    verb: str,
    rest: str = "",
    run: RunRecord | CampaignRecord | None = None,
    *,
    by_persons: bool = False,
) -> str:
    """Who types this command: the acting person if they may, else a person, else a service account; empty if nobody."""
    project, roles, decides = workspace.project, _ROLES[verb], verb in _NOT_THE_REQUESTER
    by_persons = by_persons or verb in _BY_PERSONS or "--early" in rest
    if project.single_user:
        return ""
    if verb == "validate" and ("--accept" in rest or "--thresholds" in rest):
        roles, decides, by_persons = (Role.APPROVER,), True, True
    if verb == "deliver" and "--baseline" in rest:  # who looks at it also decides
        roles, by_persons = (Role.PUBLISHER, Role.APPROVER), True
    if "--break-glass" in rest:
        roles, decides = (Role.BREAK_GLASS,), False
    able: Sequence[str] = project.list_with_role(*roles)
    if run is not None and verb == "run" and "--publish" in rest:
        able, decides = list_who_run_and_publish(workspace, run), False
    if by_persons:
        able = [name for name in able if not project.is_service(name)]
    if run is not None and decides:
        able = [name for name in able if not is_requester(project, name, run.planned_by)]
    if run is not None and verb == "approve" and decides:
        may = _list_able(workspace, actor, run)
        able = [name for name in able if name in may] or able
    if actor.person in able:
        return actor.person
    return next(iter(sorted(able, key=project.is_service)), "")


def list_who_run_and_publish(workspace: Workspace, run: RunRecord | CampaignRecord) -> tuple[str, ...]:
    """Who may type ``errata run … --publish``: operators who are publishers and did not ask for the run."""
    project = workspace.project
    publishers = project.list_with_role(Role.PUBLISHER)
    may = (name for name in project.list_with_role(Role.OPERATOR) if name in publishers)
    return tuple(name for name in may if not is_requester(project, name, run.planned_by))


def _list_able(workspace: Workspace, actor: Actor, run: RunRecord | CampaignRecord) -> Sequence[str]:
    """Whose approval is missing: of a run, or of the first member of a campaign that lacks one."""
    if isinstance(run, RunRecord):
        return evaluate_quorum(workspace, run, workspace.ledger.runs.manifest(run.run_id, actor)).may
    given, now = workspace.ledger.campaigns.approvals(run.campaign_id), workspace.ledger.now()
    for member in workspace.ledger.campaigns.manifest(run.campaign_id).members:
        found = build_member_check(workspace, member.manifest, run.digest, run.planned_by)(given, now)
        if not found.is_met:
            return found.may
    return ()
