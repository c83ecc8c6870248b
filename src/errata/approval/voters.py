"""Whose approval counts, according to the current project file. Pure."""

from __future__ import annotations

from errata.model.approval import Voters
from errata.model.product import Project, Role


def build_voters(project: Project, owner: str, *, single_user: bool) -> Voters:
    """People whose approval counts for a product of this owner."""
    team = frozenset(name for name, person in project.people.items() if owner in person.teams)
    return Voters(
        approvers=frozenset(project.list_with_role(Role.APPROVER)),
        breakers=frozenset(project.list_with_role(Role.BREAK_GLASS)),
        owner=owner if team else "",
        team=team,
        single_user=single_user,
    )
