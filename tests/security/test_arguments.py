"""Hostile text in every argument of the command line: refused with a sentence, or kept as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from security.conftest import Lab, Result
from security.corpus import CORPUS, PWNED, assert_harmless, files_under, label, some

Command = Callable[[str, str], tuple[str, ...]]
"""From a run and a payload to the words of a command."""

PLACES: dict[str, Command] = {
    "plan PRODUCT": lambda _, x: ("plan", "--partitions", "2026-01-01", "--reason", "r", "--dry-run", "--", x),
    "plan --partitions": lambda _, x: ("plan", "fin.sales", f"--partitions={x}", "--reason", "r", "--dry-run"),
    "plan --partitions by value": lambda _, x: (
        "plan", "fin.regions", f"--partitions={x}", "--reason", "r", "--dry-run"),
    "plan --from": lambda _, x: (
        "plan", "fin.sales", f"--from={x}", "--to", "2026-01-03", "--reason", "r", "--dry-run"),
    "plan --to": lambda _, x: ("plan", "fin.sales", "--from", "2026-01-03", f"--to={x}", "--reason", "r", "--dry-run"),
    "plan --reason": lambda _, x: ("plan", "fin.sales", "--partitions", "2026-01-01", f"--reason={x}", "--dry-run"),
    "plan --kind": lambda _, x: ("plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "r", f"--kind={x}"),
    "plan --canary": lambda _, x: (
        "plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "r", "--dry-run", f"--canary={x}"),
    "plan --deadline": lambda _, x: (
        "plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "r", "--dry-run", f"--deadline={x}"),
    "plan --supersede": lambda _, x: (
        "plan", "fin.sales", "--partitions", "2026-01-02", "--reason", "r", "--dry-run", f"--supersede={x}"),
    "plan --override": lambda _, x: (
        "plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "r", "--dry-run", f"--override={x}"),
    "plan --override WHY": lambda _, x: (
        "plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "r", "--dry-run", f"--override=range={x}"),
    "plan --as": lambda _, x: (
        "plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "r", "--dry-run", f"--as={x}"),
    "try PRODUCT": lambda _, x: ("try", "--", x, "2026-01-01"),
    "try PARTITION": lambda _, x: ("try", "fin.sales", "--", f"2026-01-01,{x}x"),
    "show RUN": lambda _, x: ("show", "--", x),
    "approve RUN": lambda _, x: ("approve", "--digest", "0" * 64, "--as", "bo", "--", x),
    "approve --digest": lambda run, x: ("approve", run, f"--digest={x}", "--as", "bo"),
    "approve --note": lambda run, x: ("approve", run, "--digest", "0" * 64, f"--note={x}", "--as", "bo"),
    "decline --note": lambda _, x: ("decline", "no-such-run", f"--note={x}", "--as", "bo"),
    "run RUN": lambda _, x: ("run", "--", x),
    "pause RUN": lambda _, x: ("pause", "--", x),
    "resume RUN": lambda _, x: ("resume", "--", x),
    "cancel RUN": lambda _, x: ("cancel", "--yes", "--reason=x", "--", x),
    "cancel --reason": lambda _, x: ("cancel", "no-such-run", "--yes", f"--reason={x}"),
    "retry --chunk": lambda run, x: ("retry", run, f"--chunk={x}"),
    "validate --accept": lambda run, x: ("validate", run, f"--accept={x}", "--as", "bo"),
    "validate --accept WHY": lambda run, x: ("validate", run, f"--accept=empty={x}", "--as", "bo"),
    "validate --thresholds": lambda run, x: ("validate", run, f"--thresholds={x}", "--as", "bo"),
    "diff --partitions": lambda run, x: ("diff", run, f"--partitions={x}"),
    "report --partitions": lambda run, x: ("report", run, f"--partitions={x}"),
    "publish --partitions": lambda run, x: ("publish", run, f"--partitions={x}", "--as", "bo", "--yes"),
    "rollback --reason": lambda run, x: ("rollback", run, f"--reason={x}", "--as", "bo", "--yes"),
    "rollback --partitions": lambda run, x: (
        "rollback", run, "--reason", "r", f"--partitions={x}", "--as", "bo", "--yes"),
    "quarantine RUN": lambda _, x: ("quarantine", "--", x),
    "status RUN": lambda _, x: ("status", "--", x),
    "why TABLE": lambda _, x: ("why", "--", x, "2026-01-01"),
    "why PARTITION": lambda _, x: ("why", "--", "lake.fin.sales", x),
    "why PARTITION by value": lambda _, x: ("why", "--", "lake.fin.regions", x),
    "why --key": lambda _, x: ("why", "lake.fin.sales", "2026-01-01", f"--key={x}"),
    "audit log --run": lambda _, x: ("audit", "log", f"--run={x}"),
    "cleanup --run": lambda _, x: ("cleanup", "--dry-run", f"--run={x}"),
    "adopt TABLE": lambda _, x: ("adopt", "--", x),
    "submit --print": lambda run, x: ("submit", run, f"--print={x}"),
    "plan --restore": lambda _, x: (
        "plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "r", "--dry-run", f"--restore={x}"),
    "approve --break-glass": lambda run, x: ("approve", run, "--digest", "0" * 64, f"--break-glass={x}", "--as", "bo"),
    "release RUN": lambda _, x: ("release", "--as", "bo", "--", x),
    "release --digest": lambda run, x: ("release", run, f"--digest={x}", "--as", "bo"),
    "release --note": lambda run, x: ("release", run, "--digest", "0" * 64, f"--note={x}", "--as", "bo"),
    "publish --break-glass": lambda run, x: ("publish", run, f"--break-glass={x}", "--as", "bo", "--yes"),
    "runs PRODUCT": lambda _, x: ("runs", "--", x),
    "runs --state": lambda _, x: ("runs", f"--state={x}"),
    "runs --by": lambda _, x: ("runs", f"--by={x}"),
    "runs --since": lambda _, x: ("runs", f"--since={x}"),
    "runs --accepted-at": lambda _, x: ("runs", "fin.sales", f"--accepted-at={x}"),
    "history TABLE": lambda _, x: ("history", "--", x, "2026-01-01"),
    "history PARTITION": lambda _, x: ("history", "--", "lake.fin.regions", x),
    "audit erase-person": lambda _, x: ("audit", "erase-person", "--reason", "r", "--yes", "--as", "bo", "--", x),
    "audit erase-person --reason": lambda _, x: (
        "audit", "erase-person", "nobody", f"--reason={x}", "--yes", "--as", "bo"),
    "ledger roles --owner": lambda _, x: ("ledger", "roles", f"--owner={x}"),
    "ledger roles --schema": lambda _, x: ("ledger", "roles", f"--schema={x}"),
    "evidence export --output": lambda run, x: ("evidence", "export", run, f"--output={x}", "--without-diff"),
    "evidence verify FILE": lambda _, x: ("evidence", "verify", "--key", "no-such-key.pub", "--", x),
    "evidence verify --key": lambda _, x: ("evidence", "verify", "no-such-bundle", f"--key={x}"),
    "an unknown command": lambda _, x: ("--", x),
    "an unknown option": lambda _, x: ("status", f"--{x}"),
}  # fmt: skip


STORED = {"plan --reason", "plan --partitions by value", "status RUN"}
"""Where text goes on to a table or the ledger: all payloads."""


@pytest.fixture(scope="module")
def run(lab: Lab) -> str:
    return str(lab.plan().id)


@pytest.fixture(autouse=True)
def _elsewhere(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands run outside the project, where nothing may appear; a file that a payload would make is looked for."""
    outside = lab.root.parent / "elsewhere"
    outside.mkdir(exist_ok=True)
    monkeypatch.chdir(outside)
    before = files_under(lab.root.parent)
    yield
    made = {path for path in files_under(lab.root.parent) - before if not path.startswith(str(lab.root / ".errata"))}
    assert not made
    assert not (lab.root / PWNED).exists()


def _judge(result: Result) -> None:
    assert_harmless(result.out, result.err)
    assert result.code in (0, 1, 2, 3, 4, 5), result.err
    begun = [line for line in result.err.splitlines() if line.startswith("error[")]
    assert len(begun) == bool(result.code), result.err
    assert not any(line.startswith("error[internal]") for line in begun), result.err


@pytest.mark.parametrize("place", PLACES)
def test_hostile_text_in_an_argument_is_refused_or_kept_as_data(lab: Lab, run: str, place: str):
    """No payload is executed, obeyed by the terminal, written elsewhere or answered with a trace."""
    for payload in CORPUS if place in STORED else some(place):
        result = lab.errata(*PLACES[place](run, payload))
        try:
            _judge(result)
        except AssertionError as error:
            raise AssertionError(f"{place}: {label(payload)}: {error}") from error


def test_the_same_in_json_is_one_document_of_plain_text(lab: Lab, run: str):
    """Errors for programs are JSON that holds no character raw which a terminal would obey."""
    import json

    for place in ("plan PRODUCT", "plan --reason", "why PARTITION by value", "show RUN", "plan --partitions by value"):
        for payload in some(place):
            words = PLACES[place](run, payload)
            result = lab.errata("--json", *words)
            assert_harmless(result.out, result.err)
            assert json.loads(result.out), (place, label(payload))


def test_a_reason_is_kept_as_it_was_given(lab: Lab):
    """What is plain text is not changed on its way into the manifest and out of it, and nothing in it is expanded."""
    said = "O'Brien; $(touch x) ${HOME} {0} %s [bold] «é» 漢字 -- /* */ `x`"
    plan = lab.plan(reason=said, partitions="2026-01-03")
    assert lab.client.show(plan.id).reason == said
    assert said in lab.client.manifest_bytes(plan.id).decode()
    lab.client.cancel(plan.id, reason="no longer needed", as_="ana")


def test_partition_values_with_two_spellings_are_one_partition(lab: Lab):
    """A value in quotes names the partition of the value, never a second partition beside it."""
    first = lab.client.plan("fin.regions", partitions='"eu"', reason="r", dry_run=True, as_="ana")
    assert first.partitions == ("eu",)
    assert not first.new_partitions


def test_a_range_of_all_time_is_refused_before_it_fills_the_memory(lab: Lab):
    """A slip of the year costs a sentence."""
    for start, end in (("0001-01-01", "9999-12-31"), ("2026-01-01", "9999-12-31")):
        result = lab.errata("plan", "fin.sales", "--from", start, "--to", end, "--reason", "r")
        assert result.code in (2, 3)
    assert lab.errata("plan", "fin.sales", "--partitions", "9999-12-31", "--reason", "r", "--dry-run").code in (0, 2, 3)


@pytest.mark.parametrize("name", ["errata.yaml", ".errata/ledger.db", "products/sales.yaml", ".", "no/such/dir/x.html"])
def test_a_report_replaces_reports_only(lab: Lab, tmp_path: Path, name: str):
    """``-o`` writes a new file or a report of before; a ledger or a project file is not lost to a slip."""
    from errata.cli.app.output_files import write_atomically
    from errata.errors import UsageError

    place = lab.root / name
    before = place.read_bytes() if place.is_file() else None
    with pytest.raises(UsageError):
        write_atomically(place, b"<!doctype html>\n", "a report", b"<!doctype html>")
    assert (place.read_bytes() if place.is_file() else None) == before
    assert not list(lab.root.glob(".errata-*"))
    ours = tmp_path / "report.html"
    for n in (b"1", b"2"):
        write_atomically(ours, b"<!doctype html>\n" + n, "a report", b"<!doctype html>")
    assert ours.read_text() == "<!doctype html>\n2"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_draft_goes_to_the_chosen_file_alone(lab: Lab, tmp_path: Path):
    """``adopt -o`` creates exactly the file it was told, and never replaces one."""
    for n, payload in enumerate(CORPUS):
        inside = tmp_path / str(n) / "b"
        inside.mkdir(parents=True)
        chosen = payload.replace("/", "_").strip() or "_"
        result = lab.errata("-C", str(inside), "adopt", "lake.fin.sales", f"--output={chosen}")
        assert_harmless(result.out, result.err)
        made = {path for path in (tmp_path / str(n)).rglob("*") if path.is_file()}
        if result.code == 0:
            assert [path.parent for path in made] == [inside], label(payload)
            assert lab.errata("-C", str(inside), "adopt", "lake.fin.sales", f"--output={chosen}").code == 2
        else:
            assert result.code == 2, (label(payload), result.err)
            assert not made
