"""What the source may not contain, read from its syntax trees; each exception is listed with its reason.

Nothing here runs the product: a call that no test reaches is found as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import errata

SOURCE = Path(errata.__file__).parent

CODE_LOADERS = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "cloudpickle",
    "yaml",
    "jsonpickle",
}
EXECUTING = {"eval", "exec", "compile", "__import__"}
SHELLS = {
    ("os", "system"), ("os", "popen"), ("os", "spawnl"), ("os", "spawnv"), ("os", "execv"), ("os", "execl"),
    ("os", "execvp"), ("subprocess", "getoutput"), ("subprocess", "getstatusoutput"), ("pty", "spawn"),
}  # fmt: skip
STARTING = {"run", "Popen", "call", "check_call", "check_output"}
SQL_TAKERS = {
    "execute",
    "exec_driver_sql",
    "executemany",
    "text",
    "sql",
    "expr",
    "selectExpr",
    "where",
    "filter",
    "DDL",
}
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|ALTER|CREATE|DROP|CALL|MERGE|GRANT|TRUNCATE|WITH|BEGIN|PRAGMA|REVOKE|SET)\b[\s(]"
)


class Finding(NamedTuple):
    """Where something stands: file, function, and which rule it breaks."""

    file: str
    function: str
    rule: str


ALLOWED: dict[Finding, str] = {
    # code that is loaded because running it is the purpose
    Finding(
        "engines/spark/compute/transforms.py", "pickle_by_value", "loads code"
    ): "registers modules to be sent by value; unpickles nothing",
    Finding(
        "engines/spark/compute/transforms.py", "load_transform", "imports by name"
    ): "the planned zip, whose digest was checked",
    Finding("submit/application.py", "", "runs a module"): "the module is a constant",
    # programs, never through a shell
    Finding("engines/hooks/dbt_runner.py", "DbtProcess._run", "starts a program"): "the project's own argument list",
    Finding("engines/spark/runtime/jvm.py", "java_version", "starts a program"): "java -version",
    Finding(
        "engines/spark/runtime/class_archive.py", "build_archive", "starts a program"
    ): "this Python, with constants",
    Finding("jars/fetch.py", "resolve_with_ivy", "starts a program"): "the pinned tool with an argument list",
    Finding("project/code.py", "_run_git", "starts a program"): "git with an argument list",
    Finding("cli/commands/live.py", "_run_program", "starts a program"): "what the person typed, as an argument list",
    Finding("engines/hooks/commands.py", "run_command", "starts a program"): "the project's own argument list",
    Finding("engines/clusters/kubernetes.py", "Kubernetes._run", "starts a program"): "kubectl with an argument list",
    Finding(
        "engines/clusters/standalone.py", "Standalone._launch", "starts a program"
    ): "a constant script that gets the program's arguments as its own, unparsed",
    # addresses
    Finding(
        "engines/hooks/probes.py", "_read_http", "opens an address"
    ): "http and https only, checked when the file is read",
    # SQL made of constants and quoted names
    Finding("engines/consumers/postgres_database.py", "", "SQL by f-string"): "a constant of the module",
    Finding("engines/consumers/postgres_database.py", "_find_move", "SQL by f-string"): "a constant of the module",
    Finding(
        "engines/consumers/postgres_database.py", "PostgresWatermarks.move", "SQL by f-string"
    ): "a constant of the module",
    **{
        Finding("engines/consumers/postgres_database.py", name, "formats a text that is no constant"): (
            "psycopg's own composition, which quotes names"
        )
        for name in ("PostgresWatermarks.move", "_read_row", "_match_row")
    },
    Finding("engines/copies/snowflake_statements.py", "", "SQL by f-string"): "a constant list of column names",
    Finding("engines/copies/postgres_statements.py", "Statements.write_own_sums", "SQL by f-string"): (
        "quoted names of columns and tables, and a scope of quoted literals"
    ),
    **{
        Finding(f"engines/copies/{engine}_statements.py", "Statements.write", "formats a text that is no constant"): (
            "constants of the module; names are quoted, values are bound or escaped by build_scope"
        )
        for engine in ("postgres", "snowflake")
    },
    Finding(
        "engines/copies/snowflake_copies.py", "SnowflakeCopies.refresh", "formats a text that is no constant"
    ): "a constant of the module with one quoted name",
    Finding(
        "ledger/outbox/payments.py", "Outbox.queues", "formats a text that is no constant"
    ): "names of two columns; values are bound",
    Finding(
        "model/recording/copy_query.py", "build_copy_query", "SQL by f-string"
    ): "quoted names of columns and tables",
    Finding("ledger/db/sqlite.py", "SqliteDialect", "SQL by f-string"): "constants of the module",
    Finding(
        "ledger/db/sqlite.py", "SqliteDialect.drop_triggers", "SQL by f-string"
    ): "names of triggers, quoted by the dialect",
    Finding("ledger/db/migrate.py", "_create_tables", "SQL by f-string"): "constants of the definition",
    Finding("ledger/db/postgres.py", "", "SQL by f-string"): "a constant number",
    Finding("ledger/db/postgres.py", "PostgresDialect", "SQL by f-string"): "constants of the module",
    Finding(
        "ledger/db/postgres.py", "PostgresDialect.drop_triggers", "SQL by f-string"
    ): "names of triggers, quoted by the dialect",
    Finding("ledger/schema/trigger_sql.py", "_render_sqlite_trigger", "SQL by f-string"): "rules of the module",
    Finding("ledger/schema/trigger_sql.py", "_build_postgres_trigger", "SQL by f-string"): "rules of the module",
    Finding("ledger/schema/trigger_sql.py", "_build_constraint_trigger", "SQL by f-string"): "rules of the module",
    Finding(
        "ledger/db/roles.py", "render_roles_sql", "SQL by f-string"
    ): "printed for a superuser; names have a grammar",
    Finding("ledger/db/roles.py", "render_roles_sql", "formats a text that is no constant"): "a constant of the module",
    Finding("ledger/schema/trigger_sql.py", "_build_truncate_trigger", "SQL by f-string"): "rules of the module",
    Finding(
        "engines/spark/measure/aggregates.py", "measure_scan", "SQL by f-string"
    ): "expressions that were vetted and written out",
    Finding(
        "engines/spark/measure/lookups.py", "_join_lookup", "SQL by f-string"
    ): "quoted column names and our own names",
    Finding("engines/spark/diff/profile.py", "_build_aggregates", "SQL by f-string"): "our own column numbers",
    Finding(
        "engines/spark/write/side_tables.py", "SparkSideTables.show", "SQL by f-string"
    ): "a quoted name and the SQL of publishing/sql/accepted_view.py or publishing/sql/comparison.py",
    Finding("engines/spark/write/side_tables.py", "SparkSideTables.drop_view", "SQL by f-string"): "a quoted name",
    Finding(
        "publishing/sql/comparison.py", "build_read_statements", "SQL by f-string"
    ): "quoted names and a tag that is a word; shown, not run",
    Finding(
        "publishing/sql/comparison.py", "build_comparison_sql", "SQL by f-string"
    ): "quoted names and a mask of our own",
    Finding(
        "publishing/sql/comparison.py", "_build_side", "SQL by f-string"
    ): "quoted names, escaped literals, a tag that is a word",
    Finding("cli/render/preview.py", "render_preview", "SQL by f-string"): "a statement to copy; shown, not run",
    Finding(
        "publishing/sql/accepted_view.py", "build_accepted_sql", "SQL by f-string"
    ): "quoted names, escaped literals; a view is text",
    Finding(
        "publishing/sql/accepted_view.py", "build_swapped_sql", "SQL by f-string"
    ): "quoted names, escaped literals; a view is text",
    Finding(
        "engines/spark/compute/sql_transforms.py", "write_statement", "SQL by f-string"
    ): "quoted names and views of our own around the sealed query, which is code",
    Finding("project/adopt.py", "_draft_transform", "SQL by f-string"): "quoted names; a draft for a person",
    Finding("planning/unnameable.py", "describe_unnameable", "SQL by f-string"): "quoted names, for people to run",
    Finding(
        "model/side_tables.py", "_build_create_statement", "SQL by f-string"
    ): "quoted names; the plan shows it and the manifest holds it",
    # SQL that is shown to a person and never run
    Finding(
        "delivery/stream_checkpoints.py", "_hand_over", "SQL by f-string"
    ): "names and a tag that are words; partitions are literals",
    Finding("planning/schema.py", "build_lineage_sql", "SQL by f-string"): "told to the reader",
    Finding(
        "publishing/rewrite_call.py", "build_rewrite_call", "SQL by f-string"
    ): "told to the reader; values are literals",
    Finding("project/check.py", "build_add_columns_sql", "SQL by f-string"): "told to the reader",
    # format strings that are constants of a table
    Finding(
        "engines/spark/measure/aggregates.py", "_describe_without_values", "formats a text that is no constant"
    ): "a table of constants",
    Finding("submit/targets.py", "_list_advice", "formats a text that is no constant"): "a table of constants",
}
"""Every exception, with its reason; one that is no longer needed fails the test as well."""


@cache
def _trees() -> dict[str, ast.Module]:
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))
    }


def _nodes(tree: ast.Module) -> list[tuple[ast.AST, str]]:
    """Every node with the qualified name of the function or class around it."""
    found: list[tuple[ast.AST, str]] = []
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, around = waiting.pop()
        for child in ast.iter_child_nodes(node):
            is_scope = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            inner = f"{around}.{child.name}".removeprefix(".") if is_scope else around  # type: ignore[attr-defined]
            found.append((child, inner))
            waiting.append((child, inner))
    return found


def _name(function: ast.expr) -> tuple[str, str]:
    """``os.system`` as (os, system), ``eval`` as ("", eval)."""
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return owner, function.attr
    return "", function.id if isinstance(function, ast.Name) else ""


def _is_made(node: ast.expr) -> bool:
    """Whether a text is put together: f-string, +, %, format, join."""
    match node:
        case ast.JoinedStr():
            return any(isinstance(piece, ast.FormattedValue) for piece in node.values)
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            return any(_is_text(side) or _is_made(side) for side in (node.left, node.right))
        case ast.Call(func=ast.Attribute(attr="format" | "join", value=value)):
            return _is_text(value)
        case _:
            return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _starts_as_sql(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        return _is_made(node) and bool(SQL.match(str(node.values[0].value)))
    return False


def _rules_of_call(node: ast.Call) -> Iterator[str]:
    owner, name = _name(node.func)
    if not owner and name in EXECUTING and isinstance(node.func, ast.Name):
        yield "executes text"
    if (owner, name) in SHELLS or any(
        word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
        for word in node.keywords
    ):
        yield "starts a shell"
    if owner == "subprocess" and name in STARTING:
        yield "starts a program"
        if node.args and (_is_text(node.args[0]) or _is_made(node.args[0])):
            yield "starts a program by one text"
    if (owner, name) == ("importlib", "import_module") and not isinstance(node.args[0], ast.Constant):
        yield "imports by name"
    if owner == "runpy":
        yield "runs a module"
    if name in ("urlopen", "urlretrieve"):
        yield "opens an address"
    if (owner, name) == ("tempfile", "mktemp"):
        yield "a name that another may take"
    if name in SQL_TAKERS and any(_is_made(given) for given in node.args):
        yield "SQL by f-string"
    if name in ("format", "format_map") and isinstance(node.func, ast.Attribute) and not _is_text(node.func.value):
        is_reader = all(isinstance(given, ast.Constant) for given in node.args)  # spark.read.format("iceberg")
        if not is_reader or node.keywords:
            yield "formats a text that is no constant"


def findings() -> dict[Finding, int]:
    """Everything that the rules find, with its line."""
    found: dict[Finding, int] = {}
    for file, tree in _trees().items():
        for node, around in _nodes(tree):
            rules: list[str] = []
            if isinstance(node, ast.Import):
                rules += ["loads code" for name in node.names if name.name.split(".")[0] in CODE_LOADERS]
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or "").split(".")[0], *(name.name for name in node.names)}
                rules += ["loads code"] if names & CODE_LOADERS else []
            elif isinstance(node, ast.Call):
                rules += _rules_of_call(node)
            if _starts_as_sql(node):
                rules.append("SQL by f-string")
            for rule in rules:
                found.setdefault(Finding(file, around, rule), getattr(node, "lineno", 0))
    return found


def test_the_source_has_none_of_it_but_what_is_listed():
    """No pickle, no eval, no shell, no SQL or format string made of text; exceptions are named and still needed."""
    found = findings()
    new = {f"{one.file}:{line} {one.function}: {one.rule}" for one, line in found.items() if one not in ALLOWED}
    assert not new, "\n".join(sorted(new))
    stale = [one for one in ALLOWED.keys() - found.keys() if (SOURCE / one.file).exists()]
    assert not stale, "no longer there"


def test_the_rules_see_what_they_are_for():
    """A test of the test: each rule finds its own example."""
    examples = {
        "executes text": "def f(x):\n    return eval(x)",
        "starts a shell": "import subprocess\ndef f(x):\n    subprocess.run(x, shell=True)",
        "starts a program by one text": "import subprocess\ndef f(x):\n    subprocess.run(f'ls {x}')",
        "imports by name": "import importlib\ndef f(x):\n    importlib.import_module(x)",
        "SQL by f-string": "def f(c, x):\n    c.execute(f'SELECT * FROM {x}')",
        "formats a text that is no constant": "def f(x, y):\n    return x.format(y)",
        "loads code": "from pyspark import cloudpickle",
    }
    for rule, text in examples.items():
        tree = ast.parse(text)
        found = [r for node, _ in _nodes(tree) if isinstance(node, ast.Call) for r in _rules_of_call(node)]
        if rule == "loads code":
            found += [rule for node, _ in _nodes(tree) if isinstance(node, ast.ImportFrom)]
        assert rule in found
    assert _starts_as_sql(ast.parse("x = f'DROP TABLE {y}'").body[0].value)  # type: ignore[attr-defined]


def test_yaml_is_read_in_one_place_by_events():
    """ruamel's loaders, which build objects, are used nowhere; its parser is, in one module."""
    using = {file for file, tree in _trees().items() for node in ast.walk(tree) if _is_ruamel(node)}
    assert using == {"project/yaml/tree.py"}
    text = (SOURCE / "project/yaml/tree.py").read_text()
    assert not re.search(r"\.load(_all)?\(|yaml_object|register_class|add_constructor", text)


def _is_ruamel(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "ruamel"
    return isinstance(node, ast.Import) and any(name.name.split(".")[0] == "ruamel" for name in node.names)
