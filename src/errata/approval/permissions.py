"""Permissions: require a role, require a person, and keep the requester from deciding."""

from __future__ import annotations

from collections.abc import Iterable

from errata.errors import ApprovalRefused, PermissionRefused
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.product import Project, Role
from errata.workspace import Workspace


def is_single_user(project: Project, manifest: Manifest) -> bool:
    """Whether one person may decide everything about this run: the project says so now, and did so at planning.

    A plan of a project with people stays under the four-eyes rule after the project was changed to a single user.
    """
    return manifest.single_user and project.single_user


def has_role(project: Project, name: str, roles: Iterable[Role]) -> bool:
    """Whether this person has one of the roles; the only person of a single-user project has all."""
    person = project.people.get(name)
    return project.single_user or (person is not None and not set(roles).isdisjoint(person.roles))


def is_requester(project: Project, name: str, requester: str) -> bool:
    """Whether the four-eyes rule keeps this person from deciding; there is none in a single-user project."""
    return not project.single_user and project.is_same_person(name, requester)


def list_owners(project: Project, owner: str) -> tuple[str, ...]:
    """People who are the owner that a consumer names: the person, or members of the team; none if nobody is known."""
    return tuple(
        person.name
        for person in project.people.values()
        if owner and (owner in person.teams or project.is_same_person(person.name, owner))
    )


def require_role(
    workspace: Workspace,
    actor: Actor,
    roles: Iterable[Role],
    action: str,
    run_id: str | None = None,
    *,
    persons: bool = False,
) -> None:
    """Require one of these roles; a refusal is audited. ``persons`` leaves service accounts out of its hint."""
    wanted = set(roles)
    if has_role(workspace.project, actor.person, wanted):
        return
    person = workspace.project.people.get(actor.person)
    able = [
        name
        for name in workspace.project.list_with_role(*wanted)
        if not (persons and workspace.project.is_service(name))
    ]
    has = "is not listed under people" if person is None else f"has {', '.join(person.roles)}"
    hint = f"ask {' or '.join(able)}" if able else "give someone the role in errata.yaml"
    if person is None and able:
        hint = f"{' or '.join(able)} may; say who you are with --as NAME, or for all commands with ERRATA_USER=NAME"
    spelt = workspace.project.find_case_variant(actor.person) if person is None else None
    if spelt is not None:
        has, hint = f"is not how {spelt} is spelt", f"--as {spelt}"
    error = PermissionRefused(
        f"{action} was refused; expected the role {' or '.join(sorted(wanted))}, {actor.person or 'nobody'} {has}",
        state="nothing was changed",
        hint=hint,
        person=actor.person,
    )
    # before the first plan there is no ledger, and a refusal creates none
    if run_id is not None or workspace.ledger.exists():
        workspace.ledger.audit.record_refusal(run_id, actor, action, error.message)
    raise error


def require_person(workspace: Workspace, actor: Actor, roles: Iterable[Role], action: str, run_id: str) -> None:
    """Refuse service accounts: a decision is made by a person, even where the account has the role for the action."""
    if not workspace.project.is_service(actor.person):
        return
    able = [name for name in workspace.project.list_with_role(*roles) if not workspace.project.is_service(name)]
    error = PermissionRefused(
        f"{action} was refused; expected a person, {actor.person} is a service account",
        state="nothing was changed",
        hint=f"ask {' or '.join(able)}" if able else "give a person the role in errata.yaml",
        person=actor.person,
    )
    workspace.ledger.audit.record_refusal(run_id, actor, action, error.message)
    raise error


def refuse_requester(workspace: Workspace, actor: Actor, requester: str, action: str, run_id: str) -> None:
    """Four-eyes rule: the requester of a change may not decide on it."""
    if not is_requester(workspace.project, actor.person, requester):
        return
    role = Role.PUBLISHER if action in ("publish", "release") else Role.APPROVER
    project = workspace.project
    able = [name for name in project.list_with_role(role) if not is_requester(project, name, requester)]
    persons = [name for name in able if not project.is_service(name)] or able
    error = ApprovalRefused(
        f"{action} was refused; expected someone other than the requester, found {actor.person}",
        state="nothing was changed",
        hint=f"ask {' or '.join(persons)}" if persons else f"give someone else the role {role} in errata.yaml",
        person=actor.person,
    )
    workspace.ledger.audit.record_refusal(run_id, actor, action, error.message)
    raise error
