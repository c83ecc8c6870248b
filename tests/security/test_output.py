"""Text of others on its way out, to a terminal, into JSON, into HTML: nothing is obeyed, nothing becomes markup."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any

import pytest

from errata.errors import EngineError, ErrataError, PublishConflict, TransformFailed
from errata.report.page import render_page
from errata.text.escape import escape_text, require_one_line
from errata.text.markup import el, join_markup
from errata.text.numbers import format_value
from security.corpus import BROKEN, CONTROLS, FORMULAS, LOOKALIKES, MARKUP, TEMPLATES, assert_harmless, hidden_in, label
from unit.cli import samples
from unit.cli.sample_client import FakeClient, errata
from unit.report.reports import report

HOSTILE = (*CONTROLS, *BROKEN, *MARKUP, *FORMULAS, *TEMPLATES, *LOOKALIKES)
ALL = "⟨" + "|".join(HOSTILE) + "⟩"
FREE = {
    "reason", "message", "note", "person", "why", "hint", "requested_by", "approved_by", "published_by", "judged_by",
    "consumers", "application", "origin", "basis", "location", "version", "owner", "found", "override", "action",
    "error",
    "os_user", "host", "cause", "told", "notes", "warnings", "app", "text", "call", "git_commit",
}  # fmt: skip
VALUES = {"before", "after", "key", "row", "value", "overrides", "minimum", "maximum", "body", "old", "new"}

COMMANDS: dict[str, tuple[tuple[str, ...], str, Callable[[], Any]]] = {
    "plan": (("plan", "p", "--partitions", "x", "--reason", "r"), "plan", samples.plan),
    "show": (("show", "r"), "show", samples.plan),
    "approve": (("approve", "r", "--digest", "d" * 64), "approve", samples.decision),
    "run": (("run", "r"), "run", samples.run_view),
    "validate": (("validate", "r"), "validate", lambda: samples.validation(warn=2, block=2)),
    "diff": (("diff", "r"), "diff", samples.diff),
    "try": (("try", "p", "x"), "try_out", samples.trial),
    "publish": (("publish", "r", "--yes"), "publish", samples.publication),
    "rollback": (("rollback", "r", "--reason", "x", "--yes"), "rollback", samples.rollback),
    "status": (("status", "r"), "status", samples.status),
    "runs": (("status",), "status", samples.runs),
    "why": (("why", "t", "p"), "why", samples.why),
    "audit": (("audit", "verify"), "audit_verify", samples.audit),
    "log": (("audit", "log"), "audit_log", samples.log),
    "cleanup": (("cleanup", "--dry-run"), "cleanup", samples.cleanup),
    "quarantine": (("quarantine", "r"), "quarantine", samples.quarantined),
    "report": (("report", "r"), "report", report),
}


def poisoned(view: Any, name: str = "", *, inside: bool = False) -> Any:
    """A view in which everything that people or tables write holds every payload."""
    inside = inside or name in VALUES
    if isinstance(view, str):
        return view + ALL if (name in FREE or inside) else view
    if dataclasses.is_dataclass(view) and not isinstance(view, type):
        fields = {f.name: poisoned(getattr(view, f.name), f.name, inside=inside) for f in dataclasses.fields(view)}
        return dataclasses.replace(view, **fields)
    if isinstance(view, Mapping):
        return {
            (key + ALL if inside and isinstance(key, str) else key): poisoned(item, str(key), inside=inside)
            for key, item in view.items()
        }
    if isinstance(view, (list, tuple)):
        return type(view)(poisoned(item, name, inside=inside) for item in view)
    return view


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_obeys_nothing_that_it_shows(name: str):
    """Names, reasons, messages and values of rows are written out where a terminal would obey them."""
    words, method, sample = COMMANDS[name]
    client = FakeClient({method: poisoned(sample())})
    result = errata(*words, client=client)
    assert_harmless(result.out, result.err)
    forged = [line for line in result.out.splitlines() if line.startswith(("error[internal]", "next: forged"))]
    assert not forged
    if name not in ("audit", "log", "cleanup", "approve", "run", "rollback"):
        assert "\\x1b[2J" in result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_json_holds_the_same_text_and_obeys_as_little(name: str):
    """A program gets what was stored, character by character; a terminal that shows it gets nothing to obey."""
    words, method, sample = COMMANDS[name]
    given = poisoned(sample())
    result = errata(*words, "--json", client=FakeClient({method: given}))
    assert_harmless(result.out, result.err)
    told = json.dumps(json.loads(result.out))
    if name not in ("audit", "run", "rollback"):
        assert json.dumps(ALL)[1:-1] in told


@pytest.mark.parametrize("kind", [ErrataError, EngineError, TransformFailed, PublishConflict, RuntimeError, ValueError])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_error_obeys_nothing_that_it_quotes(kind: type[Exception], options: tuple[str, ...]):
    """Messages of engines and transforms quote values; the line that says so cannot be forged either."""
    raised = kind(ALL) if not issubclass(kind, ErrataError) else kind(ALL, hint=ALL, state=ALL, where=[{"deep": ALL}])
    result = errata("show", "r", *options, client=FakeClient({"show": raised}))
    assert_harmless(result.out, result.err)
    assert result.code in (1, 5)
    assert sum(line.startswith("error[") for line in result.err.splitlines()) == (0 if options else 1)


def test_the_traceback_that_was_asked_for_is_harmless_too():
    """``ERRATA_DEBUG=1`` shows where an error came from; it quotes the same values."""
    result = errata("show", "r", client=FakeClient({"show": RuntimeError(ALL)}), environ={"ERRATA_DEBUG": "1"})
    assert "Traceback" in result.err
    assert not hidden_in(result.err)


@pytest.mark.parametrize("text", [f"\x1b[31m{x}\n" for x in ("a", "b")])
def test_narration_obeys_nothing(text: str):
    """What workers tell on their way is text of others as well."""

    def told(client: FakeClient, *_: Any, **__: Any) -> Any:
        client.opened[0]["narrate"](f"chunk c1 failed: {text}next: forged")
        progress = client.opened[0]["progress"]("run", 1, "day")
        progress.show("c\x1b1", "computing\x07")
        progress.close()
        return samples.run_view()

    result = errata("run", "r", client=FakeClient({"run": told}))
    assert_harmless(result.out, result.err)
    assert not any(line.startswith("next: forged") for line in result.err.splitlines())


class _Elements(HTMLParser):
    """Every element and attribute that a browser would make."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [found or "" for name, found in attrs if name in ("href", "src", "action", "formaction")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_a_report_of_hostile_rows_has_the_elements_of_an_ordinary_one():
    """Values are text: no element, no attribute, no address comes from one; its text is shown whole."""
    ordinary, hostile = _Elements(), _Elements()
    ordinary.feed(render_page(report()))
    text = render_page(poisoned(report()))
    hostile.feed(text)
    assert hostile.tags <= ordinary.tags
    assert hostile.attributes <= ordinary.attributes
    assert not hostile.links
    assert not hidden_in(text)
    shown = "".join(hostile.text)
    assert "<script>alert(1)</script>" in shown
    assert "=cmd|' /C calc'!A0" in shown
    assert "script-src" not in text
    assert "default-src &#x27;none&#x27;" in text


@pytest.mark.parametrize("name", ["plan", "status", "runs", "validate", "diff", "try"])
def test_a_notebook_shows_hostile_values_as_text(name: str):
    """What a notebook shows for a view has the same elements whatever its values are, and fetches nothing."""
    sample = COMMANDS[name][2]
    ordinary, hostile = _Elements(), _Elements()
    ordinary.feed(sample()._repr_html_())
    text = poisoned(sample())._repr_html_()
    hostile.feed(text)
    assert hostile.tags <= ordinary.tags
    assert hostile.attributes <= ordinary.attributes
    assert not hostile.links
    assert not hidden_in(text)
    assert "<script>alert(1)</script>" in "".join(hostile.text)
    assert "url(" not in text


@pytest.mark.parametrize("payload", HOSTILE, ids=label)
def test_markup_is_made_by_construction(payload: str):
    """Whatever stands in a cell or an attribute, the browser sees one cell with one attribute and that text."""
    seen = _Elements()
    seen.feed(el("td", payload, title=payload, class_=payload))
    assert seen.tags == {"td"}
    assert seen.attributes <= {"title", "class"}
    assert "".join(seen.text) == escape_text(payload)
    assert not hidden_in(join_markup([payload]))


@pytest.mark.parametrize("payload", [*FORMULAS, *CONTROLS, *LOOKALIKES], ids=label)
def test_a_cell_shows_its_value_and_no_other(payload: str):
    """A formula is text, a digit of another script is not the one it looks like, a control character is written out."""
    assert format_value(payload) == escape_text(payload)
    assert not hidden_in(format_value(payload))
    assert "\n" not in format_value(payload)


@pytest.mark.parametrize("payload", [*CONTROLS, *BROKEN], ids=label)
def test_what_stands_in_every_record_is_one_line_of_plain_text(payload: str):
    """Reasons, notes and names are refused, with the character by its number, before anything is recorded."""
    from errata.errors import UsageError

    with pytest.raises(UsageError, match=r"expected one line of plain text, found the character U\+"):
        require_one_line("--reason", f"x{payload}x")
    with pytest.raises(UsageError, match="at most 2,000 characters"):
        require_one_line("--reason", "x" * 2_001)
    assert require_one_line("--reason", "cafe\u0301 ") == "caf\u00e9"


def test_nothing_writes_csv():
    """No command exports CSV; a change that adds one escapes formulas and names them here."""
    from security.test_static import SOURCE

    writers = ("csv.writer", "DictWriter", "to_csv", "write_csv", "write.csv", "CSVWriter")
    assert not [p for p in SOURCE.rglob("*.py") if any(name in p.read_text("utf-8") for name in writers)]
