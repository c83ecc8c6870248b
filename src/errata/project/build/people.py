"""Build people, approval rules and the alarm from project files. Pure.

Two spellings of one name would count as two people, so names and aliases are unique regardless of letter case. A
product's ``approval`` overrides the project's key by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from errata.model.approval import ApprovalRules
from errata.model.duration import to_days
from errata.model.product import Alarm, Person, Role
from errata.project.files import ApprovalFile, PersonFile, ProjectFile
from errata.project.problems import ProblemReport

_OF_SERVICES = (Role.OPERATOR, Role.PUBLISHER)


def build_people(file: ProjectFile, report: ProblemReport) -> dict[str, Person]:
    """People by name; empty in single-user mode."""
    if file.people == "single-user":
        return {}
    taken: dict[str, str] = {}
    for name in file.people:
        _check_unique_name(name, ("people", name), taken, report)
    for name, person in file.people.items():
        for n, alias in enumerate(person.aliases):
            _check_unique_name(alias, ("people", name, "aliases", n), taken, report)
        _refuse_repeats(person.roles, ("people", name, "roles"), report)
        _refuse_repeats(person.teams, ("people", name, "teams"), report)
        if person.service:
            _check_service(name, person, report)
    return {
        name: Person(
            name, tuple(Role(role) for role in person.roles), tuple(person.teams), person.service, tuple(person.aliases)
        )
        for name, person in file.people.items()
    }


def build_approval(file: ApprovalFile, report: ProblemReport, base: ApprovalRules | None = None) -> ApprovalRules:
    """The rules, with values from ``base`` for keys that the file leaves out."""
    if file.valid is not None and not to_days(file.valid):
        report.at(("approval", "valid"), "expected longer than nothing, such as 30d")
    return replace(base or ApprovalRules(), **file.model_dump(exclude_none=True))


def refuse_unreachable_quorum(quorum: int, people: Mapping[str, Person], report: ProblemReport) -> None:
    """Report a quorum that cannot be reached: every plan would wait for ever."""
    able = sorted(person.name for person in people.values() if Role.APPROVER in person.roles)
    if not people and quorum > 1:
        report.at(("approval", "quorum"), "expected 1, because one person may do everything in a single-user project")
    elif people and quorum > max(len(able), 1):
        report.at(("approval", "quorum"), f"expected at most {len(able)}, the people who approve ({', '.join(able)})")


def build_alarm(file: ProjectFile) -> Alarm | None:
    """Command that runs on break-glass."""
    return Alarm(tuple(file.alarm.command), file.alarm.timeout) if file.alarm else None


def _check_service(name: str, person: PersonFile, report: ProblemReport) -> None:
    for n, role in enumerate(person.roles):
        if role not in _OF_SERVICES:
            said = f"a service account runs, validates and publishes; expected {' or '.join(_OF_SERVICES)}"
            report.at(("people", name, "roles", n), said)
    if person.teams:
        report.at_key(("people", name, "teams"), "a service account speaks for no team; expected a person")


def _check_unique_name(name: str, path: tuple[str | int, ...], taken: dict[str, str], report: ProblemReport) -> None:
    if name.casefold() in taken:
        said = f'expected a name of its own; "{taken[name.casefold()]}" is the same but for letter case'
        if taken[name.casefold()] == name:
            said = "expected a name of its own; it is taken"
        if isinstance(path[-1], int):
            report.at(path, said)
        else:
            report.at_key(path, f"people.{name}: {said}")
        return
    taken[name.casefold()] = name


def _refuse_repeats(items: Sequence[str], path: tuple[str, ...], report: ProblemReport) -> None:
    for n, item in enumerate(items):
        if item in items[:n]:
            report.at((*path, n), "given twice")
