from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import json
import re
import shlex
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import errata.errors
import errata.views
from errata.cli.app import failure
from errata.errors import ErrataError
from errata.failpoints import NAMES
from errata.model import diff as diffs
from errata.model.diff import Diff, MetricMoves, Movement
from errata.planning.request import RULES
from errata.project import load_project
from errata.views.diff import DiffView
from errata.views.report import AcceptedWarning, ReportedPublication, ReportView

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])
LINK = r"\]\(([^)\s]+)\)"
GROUP_OPTIONS = {"-C": 1, "--as": 1, "--json": 0, "--yes": 0, "-y": 0, "--version": 0, "--help": 0}


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = _generator()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _blocks(path: Path, language: str) -> Iterator[str]:
    """Fenced blocks of a language, with their indentation removed."""
    pattern = re.compile(rf"^([ ]*)```{language}\n(.*?)^\1```[ ]*$", re.MULTILINE | re.DOTALL)
    for indent, body in pattern.findall(_text(path)):
        yield "\n".join(line.removeprefix(indent) for line in body.splitlines()) + "\n"


def _without_code(text: str) -> str:
    return re.sub(r"^[ ]*```.*?^[ ]*```", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def _anchors(path: Path) -> set[str]:
    return {_anchor(line.lstrip("#")) for line in _without_code(_text(path)).splitlines() if line.startswith("#")}


def _sections(path: Path) -> dict[str, str]:
    """Second-level headings and what stands below each."""
    pieces = re.split(r"^## ", _text(path), flags=re.MULTILINE)[1:]
    return {piece.partition("\n")[0].strip(): piece.partition("\n")[2] for piece in pieces}


def _is_project(block: str) -> bool:
    """Whether a block is a project file that a page shows whole, and not a part to add."""
    return block.startswith("# errata.yaml") and "\nproject:" in block


class TestGenerated:
    @pytest.mark.parametrize("path", sorted(GENERATE.pages()), ids=_name)
    def test_generated_pages_are_current(self, path: Path):
        """A page that is generated is committed as `python docs/generate.py` writes it."""
        assert _text(path) == GENERATE.pages()[path]

    def test_every_command_is_documented(self):
        """The reference has a section for every command and for every option it takes of its own."""
        sections = _sections(DOCS / "reference" / "cli.md")
        for name, command in GENERATE.commands(GENERATE.program()):
            section = sections[f"errata {' '.join(name)}"]
            own = [param for param in command.params if param.name not in GENERATE.SHARED]
            for option in (opt for param in own if param.param_type_name == "option" for opt in param.opts):
                assert f"`{option}`" in section

    def test_every_role_that_is_named_belongs_to_a_command(self):
        """The table of who may do what names commands that exist."""
        known = {" ".join(name) for name, _ in GENERATE.commands(GENERATE.program())}
        assert set(GENERATE.WHO) <= known


class TestReference:
    def test_error_codes_equal_headings(self):
        """Every error code has one heading, and every heading is an error code."""
        of_tree = {kind.code for _, kind in inspect.getmembers(errata.errors, _is_error)}
        of_program = {kind.code for _, kind in inspect.getmembers(failure, _is_error)}
        headings = [heading.strip("`") for heading in _sections(DOCS / "reference" / "errors.md")]
        assert len(headings) == len(set(headings))
        assert set(headings) == (of_tree | of_program) - {ErrataError.code}

    def test_error_exit_codes_are_those_of_the_code(self):
        """Each section says the exit code and the class that the code has."""
        sections = _sections(DOCS / "reference" / "errors.md")
        for name, kind in inspect.getmembers(errata.errors, _is_error):
            if kind is not ErrataError:
                assert sections[f"`{kind.code}`"].strip().startswith(f"Exit code {kind.exit_code}, `{name}`")

    def test_the_tree_of_errors_is_true(self):
        """The docstring of the errors draws every class below its parent, with its exit code and code."""
        drawn, parents = {}, {-1: None}
        for line in (errata.errors.__doc__ or "").splitlines():
            found = re.fullmatch(r"    ([│├└─ ]*)([A-Z]\w+) +(\d|exit) +([a-z-]+) *(\(retryable\))?", line)
            if found:
                depth = len(found[1]) // 4
                parents[depth] = found[2]
                code = ErrataError.code if found[3] == "exit" else found[4]
                exit_code = ErrataError.exit_code if found[3] == "exit" else int(found[3])
                drawn[found[2]] = (parents[depth - 1], exit_code, code, found[5] is not None)
        real = {
            name: (
                kind.__base__.__name__ if kind is not ErrataError else None,
                kind.exit_code,
                kind.code,
                kind.retryable,
            )
            for name, kind in inspect.getmembers(errata.errors, _is_error)
        }
        assert drawn == real

    @pytest.mark.parametrize("schema", ["errata.schema.json", "product.schema.json"])
    def test_every_key_of_project_files_is_documented(self, schema: str):
        """Each key that a schema allows is mentioned in the reference of project files."""
        page = _text(DOCS / "reference" / "files.md")
        data = json.loads(files("errata.project.schema").joinpath(schema).read_text("utf-8"))
        missing = [key for key in _keys(data) if not re.search(rf"`(?:[\w.]+\.)?{re.escape(key)}`", page)]
        assert missing == []

    @pytest.mark.parametrize("view", errata.views.__all__)
    def test_every_field_of_a_view_is_documented(self, view: str):
        """Each view has its section, which mentions all its fields."""
        section = _sections(DOCS / "reference" / "json.md")[view]
        fields = dataclasses.fields(getattr(errata.views, view))
        assert [field.name for field in fields if f"`{field.name}`" not in section] == []

    def test_every_field_of_a_diff_is_documented(self):
        """The flat answer of diff is documented whole."""
        section = _sections(DOCS / "reference" / "json.md")["DiffView"]
        names = [field.name for kind in (DiffView, Diff) for field in dataclasses.fields(kind) if field.name != "diff"]
        assert [name for name in names if f"`{name}`" not in section] == []

    @pytest.mark.parametrize(
        "section, kinds",
        [
            ("DiffView", (diffs.ColumnChange, diffs.PartitionDiff, diffs.SampleRow, diffs.ChangePattern)),
            ("Distribution", (diffs.Distribution, diffs.Profile, diffs.TopValue)),
            ("MetricMoves", (MetricMoves, Movement)),
            ("ReportView", (ReportView, AcceptedWarning, ReportedPublication)),
        ],
    )
    def test_every_field_within_a_diff_or_report_is_documented(self, section: str, kinds: tuple[type, ...]):
        """What the answers of diff and report are made of is documented field by field."""
        text = _sections(DOCS / "reference" / "json.md")[section]
        names = [field.name for kind in kinds for field in dataclasses.fields(kind)]
        assert [name for name in names if f"`{name}`" not in text] == []

    def test_every_command_has_its_json_answer(self):
        """The table of JSON answers names every command."""
        table = _text(DOCS / "reference" / "json.md").partition("## ")[0]
        for name, _ in GENERATE.commands(GENERATE.program()):
            assert f"`{' '.join(name)}`" in table

    def test_failpoints_equal_the_table(self):
        """The page lists exactly the failpoints that exist, in their order."""
        rows = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \|", _text(DOCS / "reference" / "failpoints.md"), re.MULTILINE)
        assert tuple(rows) == NAMES

    def test_every_guardrail_is_documented(self):
        """The table of guardrails names every rule."""
        section = _sections(DOCS / "reference" / "files.md")["Guardrails"]
        assert [rule for rule in RULES if f"`{rule}`" not in section] == []


def _is_error(kind: Any) -> bool:
    return inspect.isclass(kind) and issubclass(kind, ErrataError)


def _keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict) and "type" in schema and schema["type"] == "object":
            yield from properties
        for item in schema.values():
            yield from _keys(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _keys(item)


class TestLinks:
    @pytest.mark.parametrize("path", PAGES, ids=_name)
    def test_links_inside_the_repository_resolve(self, path: Path):
        """Every relative link names a file that exists, and a heading that file has."""
        for target in re.findall(LINK, _without_code(_text(path))):
            if re.match(r"[a-z]+:", target):
                continue
            place, _, anchor = target.partition("#")
            found = (path.parent / place).resolve() if place else path
            assert found.exists(), target
            if anchor and found.suffix == ".md":
                assert anchor in _anchors(found), target

    def test_every_page_is_reachable_from_the_contents(self):
        """The contents page links to every page of the documentation, and to the contents of the alerts."""
        contents, alerts = DOCS / "README.md", DOCS / "alerts" / "README.md"
        linked = {
            (page.parent / target.partition("#")[0]).resolve()
            for page in (contents, alerts)
            for target in re.findall(LINK, _text(page))
        }
        assert alerts.resolve() in linked
        expected = {page.resolve() for page in DOCS.rglob("*.md")} - {contents}
        assert expected - linked == set()


def _typed_commands() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        for block in _blocks(path, "console"):
            joined = block.replace("\\\n", " ")
            for line in joined.splitlines():
                found = re.match(r"\$ (?:[A-Z_]+=\S+ )?(?:\.venv/bin/)?(errata .*)", line)
                if found:
                    yield _name(path), found[1]


class TestExamples:
    @pytest.mark.parametrize("page, typed", [*_typed_commands()])
    def test_typed_commands_exist_with_their_options(self, page: str, typed: str):
        """What a page tells the reader to type is a command line that the program takes."""
        words = shlex.split(typed.partition(" | ")[0])[1:]
        command, path = GENERATE.program(), "errata"
        while hasattr(command, "commands"):
            while words and words[0] in GROUP_OPTIONS:
                words = words[1 + GROUP_OPTIONS[words[0]] :]
            if not words:
                break  # a group that has a command by default takes that, and another refuses
            assert words[0] in command.commands, f"{page}: {typed}"
            command, path, words = command.commands[words[0]], f"{path} {words[0]}", words[1:]
        command.make_context(path, list(words))

    def test_pages_have_commands_to_check(self):
        """The check above is about something."""
        assert len(list(_typed_commands())) > 40

    @pytest.mark.parametrize(
        "path", [p for p in PAGES if any("# products/" in b for b in _blocks(p, "yaml"))], ids=_name
    )
    def test_product_files_load(self, path: Path, tmp_path: Path):
        """A product file that a page shows whole loads as it stands."""
        blocks = list(_blocks(path, "yaml"))
        project = next((b for b in blocks if _is_project(b)), _project_file(blocks))
        (tmp_path / "products").mkdir()
        (tmp_path / "errata.yaml").write_text(project, encoding="utf-8")
        shown = [b for b in blocks if b.startswith("# products/")]
        for n, block in enumerate(shown):
            (tmp_path / "products" / f"p{n}.yaml").write_text(block, encoding="utf-8")
        assert len(load_project(tmp_path, environ=_variables(project)).products) == len(shown)

    @pytest.mark.parametrize("path", [p for p in PAGES if any(_is_project(b) for b in _blocks(p, "yaml"))], ids=_name)
    def test_project_files_load(self, path: Path, tmp_path: Path):
        """A project file that a page shows whole loads as it stands."""
        for block in (b for b in _blocks(path, "yaml") if _is_project(b)):
            (tmp_path / "errata.yaml").write_text(block, encoding="utf-8")
            assert load_project(tmp_path, environ=_variables(block)).catalogs

    @pytest.mark.parametrize("path", PAGES, ids=_name)
    def test_python_blocks_are_python(self, path: Path):
        """Python that a page shows compiles."""
        for block in _blocks(path, "python"):
            compile(block, _name(path), "exec")


def _variables(project: str) -> dict[str, str]:
    """A value for every environment variable that a project file names."""
    names = re.findall(r"\$\{(\w+)\}", project)
    return {name: "https://value.example" if name.endswith("WEBHOOK") else "value" for name in names}


def _project_file(blocks: list[str]) -> str:
    """The project file of the reference, without consumers, which read its own product; parts of a page replace its."""
    whole = next(block for block in _blocks(DOCS / "reference" / "files.md", "yaml") if _is_project(block))
    for part in ("", *(block for block in blocks if block.startswith("# errata.yaml") and not _is_project(block))):
        for key in ("consumers", *re.findall(r"^(\w+):", part, re.MULTILINE)):
            whole = re.sub(rf"^{key}:.*\n(?:  .*\n)*", "", whole, flags=re.MULTILINE)
        whole += part
    return whole


class TestDecisions:
    def test_decision_records_have_their_parts(self):
        """Every decision record has number, date, status, context, decision and consequences, and no number twice."""
        records = sorted((DOCS / "adr").glob("[0-9]*.md"))
        numbers = [record.name[:4] for record in records]
        assert len(set(numbers)) == len(numbers)
        for record in records:
            text = _text(record)
            assert text.startswith(f"# {record.name[:4]} ")
            assert re.search(r"^Date: \d{4}-\d{2}-\d{2} · Status: \w+", text, re.MULTILINE)
            assert {"Context", "Decision", "Consequences"} <= set(_sections(record))
