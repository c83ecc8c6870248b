"""Build people, approval rules and the alarm from project files. Pure.

Two spellings of one name would count as two people, so names and aliases are unique regardless of letter case. A
product's ``approval`` overrides the project's key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from errata.model.approval import ApprovalRules
from errata.model.duration import to_days
from errata.model.product import Person, Role
from errata.project.forms import ProjectForm
from errata.project.problems import ProblemReport
from errata.project.yaml.value_reader import overlay

_OF_SERVICES = (Role.OPERATOR, Role.PUBLISHER)


def build_people(file: ProjectForm, report: ProblemReport) -> dict[str, Person]:
    """People by name; empty in single-user mode."""
    if not isinstance(file.people, Mapping):
        return {}
    taken: dict[str, str] = {}
    for name in file.people:
        _check_unique_name(name, ("people", name), taken, report)
    for name, person in file.people.items():
        for n, alias in enumerate(person.aliases):
            _check_unique_name(alias, ("people", name, "aliases", n), taken, report)
        report.refuse_repeats(person.roles, ("people", name, "roles"))
        report.refuse_repeats(person.teams, ("people", name, "teams"))
        if person.service:
            _check_service(name, person, report)
    return {name: replace(person, name=name) for name, person in file.people.items()}


def build_approval(file: ApprovalRules, report: ProblemReport, base: ApprovalRules | None = None) -> ApprovalRules:
    """The rules, with values from ``base`` for keys that the file leaves out."""
    if not to_days(file.valid):
        report.at(("approval", "valid"), "expected longer than nothing, such as 30d")
    return overlay(base or ApprovalRules(), file, report, ("approval",))


def refuse_unreachable_quorum(quorum: int, people: Mapping[str, Person], report: ProblemReport) -> None:
    """Report a quorum that cannot be reached: every plan would wait for ever."""
    able = sorted(person.name for person in people.values() if Role.APPROVER in person.roles)
    if not people and quorum > 1:
        report.at(("approval", "quorum"), "expected 1, because one person may do everything in a single-user project")
    elif people and quorum > max(len(able), 1):
        report.at(("approval", "quorum"), f"expected at most {len(able)}, the people who approve ({', '.join(able)})")


def _check_service(name: str, person: Person, report: ProblemReport) -> None:
    for n, role in enumerate(person.roles):
        if role not in _OF_SERVICES:
            said = f"a service account runs, validates and publishes; expected {' or '.join(_OF_SERVICES)}"
            report.at(("people", name, "roles", n), said)
    if person.teams:
        report.at_key(("people", name, "teams"), "a service account speaks for no team; expected a person")


def _check_unique_name(name: str, path: tuple[str | int, ...], taken: dict[str, str], report: ProblemReport) -> None:
    if name.casefold() in taken:
        said = f'expected a unique name; "{taken[name.casefold()]}" is the same but for letter case'
        if taken[name.casefold()] == name:
            said = "expected a unique name; it is taken"
        if isinstance(path[-1], int):
            report.at(path, said)
        else:
            report.at_key(path, f"people.{name}: {said}")
        return
    taken[name.casefold()] = name
