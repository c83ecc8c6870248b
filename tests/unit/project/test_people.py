"""People, teams, service accounts, what an approval takes and the alarm, as project files write them."""

from __future__ import annotations

import pytest

from errata.model.approval import ApprovalRules
from errata.model.product import Alarm, Person, Role
from errata.project import load_project
from unit.project.conftest import PROJECT, Write
from unit.project.test_load import problems_of

BO = "  bo: {roles: [approver, publisher]}\n"
FULL = PROJECT.replace(
    BO,
    "  bo: {roles: [approver, publisher], teams: [finance-data], aliases: [b.olsen]}\n"
    "  airflow: {roles: [publisher, operator], service: true}\n"
    "  dana: {roles: [approver, publisher, break_glass]}\n",
)


def people(line: str) -> str:
    return PROJECT.replace(BO, BO + line)


def test_people_have_teams_aliases_and_may_be_services(write: Write):
    """Every key of a person has its field; what is left out is an ordinary person of no team."""
    found = load_project(write(project=FULL)).people
    assert found["bo"] == Person("bo", (Role.APPROVER, Role.PUBLISHER), ("finance-data",), aliases=("b.olsen",))
    assert found["airflow"].service
    assert Role.BREAK_GLASS in found["dana"].roles
    assert found["ana"] == Person("ana", (Role.REQUESTER, Role.OPERATOR))


def test_a_name_is_found_by_its_alias_as_written(write: Write):
    """An alias is the person; another letter case is nobody, but tells who was meant."""
    project = load_project(write(project=FULL))
    assert [project.resolve_alias(name) for name in ("bo", "b.olsen", "BO", "eve")] == ["bo", "bo", "BO", "eve"]
    assert [project.find_case_variant(name) for name in ("BO", "B.Olsen", "eve")] == ["bo", "bo", None]
    assert project.is_same_person("B.OLSEN", " bo")
    assert not project.is_same_person("eve", "bo")


@pytest.mark.parametrize(
    "line, said",
    [
        ("  BO: {roles: [operator]}\n", 'people.BO: expected a unique name; "bo" is the same but for letter case'),
        ("  cy: {roles: [operator], aliases: [Ana]}\n", '"ana" is the same but for letter case; found "Ana"'),
        ("  cy: {roles: [operator], aliases: [x, x]}\n", "expected a unique name; it is taken"),
        ("  s: {roles: [approver], service: true}\n", "a service account runs, validates and publishes; expected"),
        ("  s: {roles: [requester], service: true}\n", "a service account runs, validates and publishes; expected"),
        ("  s: {roles: [break_glass], service: true}\n", "a service account runs, validates and publishes; expected"),
        ("  s: {roles: [operator], service: true, teams: [t]}\n", "a service account speaks for no team"),
        ("  cy: {roles: [operator], teams: [t, t]}\n", "given twice"),
    ],
)
def test_people_who_could_be_counted_twice_or_decide_as_programs_are_refused(write: Write, line: str, said: str):
    """Each refusal names the line."""
    (problem,) = problems_of(write(project=people(line)))
    assert said in problem
    assert problem.startswith("errata.yaml:8:")


def test_a_product_says_what_differs_from_the_project(write: Write):
    """Key by key: a product that wants a larger quorum keeps the project's age."""
    project = load_project(
        write(project=FULL, also="approval: {valid: 7d, owner: false}\n", extra="approval: {quorum: 2}\n")
    )
    assert project.approval == ApprovalRules(1, owner=False, valid="7d")
    assert project.products["fin.daily_revenue"].approval == ApprovalRules(2, owner=False, valid="7d")
    assert load_project(write()).products["fin.daily_revenue"].approval == ApprovalRules(1, owner=True, valid="30d")


@pytest.mark.parametrize("also, extra", [("approval: {quorum: 2}\n", ""), ("", "approval: {quorum: 2}\n")])
def test_a_quorum_that_nobody_can_fill_is_refused(write: Write, also: str, extra: str):
    """One approver cannot be two."""
    (problem,) = problems_of(write(also=also, extra=extra))
    assert "approval.quorum: expected at most 1, the people who approve (bo); found 2" in problem


def test_one_person_is_no_quorum(write: Write):
    """A single-user project has one."""
    single = PROJECT.partition("people:")[0] + "people: single-user\n"
    assert load_project(write(project=single)).approval.quorum == 1
    (problem,) = problems_of(write(project=single, also="approval: {quorum: 2}\n"))
    assert "expected 1, because one person may do everything" in problem


def test_an_approval_counts_for_some_time(write: Write):
    """For no time at all is refused."""
    (problem,) = problems_of(write(also="approval: {valid: 0d}\n"))
    assert "approval.valid: expected longer than nothing, such as 30d" in problem


def test_a_product_may_publish_by_itself(write: Write):
    """Only when it says so."""
    assert load_project(write()).products["fin.daily_revenue"].manual
    assert not load_project(write(extra="publish: {manual: false}\n")).products["fin.daily_revenue"].manual


def test_the_alarm_is_a_command_with_a_time_limit(write: Write):
    """Its words may come from the environment, and are never shown."""
    found = load_project(
        write(also='alarm: {command: ["./page.sh", "--key", "${PAGER_KEY}"], timeout: 5s}\n'),
        environ={"PAGER_KEY": "s3cret-key"},
    )
    assert found.alarm == Alarm(("./page.sh", "--key", "s3cret-key"), 5)
    assert "s3cret" not in repr(found.alarm)
    assert load_project(write()).alarm is None
