"""Check the query of a SQL transform without a JVM: statement, inputs, columns, parameters, functions. Pure.

Every flaw has its line in the SQL file. What only Spark can know (types, the arguments of functions, columns of source
files that are not declared) is left to Spark, which analyses the query when it first runs, at ``errata try`` or in the
first chunk. A doubt is never a flaw: a query that Spark accepts must not be refused for its style.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from errata.gate.rules.functions import RUNS_CODE, UNREPEATABLE
from errata.gate.rules.literals import is_current_time
from errata.model.sql_parameters import CONTEXT_PARAMETERS, INTERVAL_PARAMETERS
from errata.planning.sql.flaw import SqlFlaw, SqlSurroundings, find_line, suggest
from errata.planning.sql.query_columns import find_column_flaws
from errata.planning.sql.tokens import find_token_flaw

MAX_CHARACTERS = 200_000
_FIRST_WORDS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM)
_ANY_ROW = (exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.AnyValue)
_INSTEAD = {"uuid": "sha2(concat_ws('|', …), 256)", "user": ":run_id", "version": ":version"}


def find_sql_flaws(text: str, around: SqlSurroundings) -> tuple[SqlFlaw, ...]:
    """Every flaw of the query, in the order of its lines."""
    if len(text) > MAX_CHARACTERS:
        return (SqlFlaw(None, f"expected at most {MAX_CHARACTERS:,} characters, found {len(text):,}"),)
    try:
        tokens = sqlglot.tokenize(text, read="spark")
        if flaw := _find_statement_flaw(text, tokens) or find_token_flaw(tokens):
            return (flaw,)
        trees = [tree for tree in sqlglot.parse(text, read="spark") if tree is not None]
    except SqlglotError as error:
        return (_describe_syntax_error(error),)
    except RecursionError:
        return (SqlFlaw(None, "expected a query that is not nested so deeply"),)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):  # a function without its arguments
        return (SqlFlaw(None, "expected arguments as Spark documents them"),)
    tree = next((one for one in trees if not isinstance(one, exp.Semicolon)), None)
    if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery)):
        return (SqlFlaw(1, "expected one SELECT"),)
    found = [
        *_find_parameter_flaws(tree, tokens, around),
        *_find_unrepeatable(tree, text, tokens),
        *find_column_flaws(tree, around),
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda flaw: (flaw.line or 0, flaw.message)))


def _find_statement_flaw(text: str, tokens: Sequence[Token]) -> SqlFlaw | None:
    if not tokens:
        return SqlFlaw(None, "the file holds no statement; expected one SELECT")
    if tokens[0].token_type not in _FIRST_WORDS:
        return SqlFlaw(tokens[0].line, f"expected one SELECT, found {tokens[0].text}")
    end = len(text.rstrip(" \t\r\n;"))
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON and token.start < end:
            return SqlFlaw(token.line, "expected one statement and nothing after its semicolon")
    return None


def _describe_syntax_error(error: SqlglotError) -> SqlFlaw:
    details: Sequence[Mapping[str, Any]] = getattr(error, "errors", None) or ({},)
    said = str(details[0].get("description") or str(error).splitlines()[0]).rstrip(".")
    if said.startswith("Required keyword"):  # names a class of the parser
        said = "a part of the query is missing"
    near = details[0].get("highlight")
    return SqlFlaw(details[0].get("line"), f"not Spark SQL: {said}{f' at {near!r}' if near else ''}")


def _find_parameter_flaws(tree: exp.Expr, tokens: Sequence[Token], around: SqlSurroundings) -> Iterator[SqlFlaw]:
    known = {*CONTEXT_PARAMETERS, *around.config}
    for node in tree.find_all(exp.Placeholder, exp.Parameter, exp.SessionParameter):
        name = node.name if isinstance(node, exp.Placeholder) else ""
        line = _find_marker_line(name, tokens)
        if not name.isidentifier():
            yield SqlFlaw(line, f"{node.sql('spark')}: expected a parameter by name, such as :clock")
        elif name not in known:
            said = f":{name}: expected one of {', '.join(f':{one}' for one in sorted(known))}"
            yield SqlFlaw(line, said + suggest(name, known))
        elif name in INTERVAL_PARAMETERS and not around.has_interval:
            yield SqlFlaw(line, f":{name}: only partitions by time have a start and an end; expected :partitions")


def _find_marker_line(name: str, tokens: Sequence[Token]) -> int | None:
    for n, token in enumerate(tokens):
        marks = token.token_type is TokenType.COLON and tokens[min(n + 1, len(tokens) - 1)].text == name
        if marks or (not name.isidentifier() and token.token_type in (TokenType.PLACEHOLDER, TokenType.PARAMETER)):
            return token.line
    return None


def _find_unrepeatable(tree: exp.Expr, text: str, tokens: Sequence[Token]) -> Iterator[SqlFlaw]:
    """Parts of the query that may give other rows when it runs again."""
    for node in tree.walk():
        line = find_line(node)
        if isinstance(node, exp.Func):
            name = _find_written_name(node, text)
            line = line or next((token.line for token in tokens if token.text.lower() == name), None)
            if name in UNREPEATABLE:
                yield SqlFlaw(line, f"{name}(): expected the same rows every time{_advise_instead(name)}")
            elif name in RUNS_CODE:
                yield SqlFlaw(line, f"{name}(): runs code that no plan seals; expected a function of Spark")
            elif isinstance(node, _ANY_ROW) and not isinstance(node.find_ancestor(exp.Window, exp.Select), exp.Window):
                yield SqlFlaw(line, f"{name}(): takes any row; expected min, max, or a window with ORDER BY")
        elif isinstance(node, exp.Column) and not node.table and node.name.lower() in _CLOCK_WORDS:
            name = node.name.lower()
            yield SqlFlaw(line, f"{name}: expected the same rows every time{_advise_instead(name)}")
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            yield SqlFlaw(line, f"{node.sql('spark')}: no plan seals a function of a catalog; expected one of Spark")
        elif isinstance(node, exp.TableSample):
            yield SqlFlaw(line, "TABLESAMPLE: expected the same rows every time")
        elif isinstance(node, exp.Query) and node.args.get("limit") and not _has_chosen_rows(node):
            limit_line = next((token.line for token in tokens if token.token_type is TokenType.LIMIT), line)
            yield SqlFlaw(limit_line, "LIMIT takes any rows; expected an ORDER BY before it")
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and is_current_time(node.this.name):
            yield SqlFlaw(line, f"{node.this.name!r} is the current time; expected :clock, the clock of the run")


_CLOCK_WORDS = frozenset({"current_date", "current_timestamp", "current_time", "localtimestamp"})
"""Words that Spark takes for a function also without brackets, unless a column has that name."""


def _has_chosen_rows(query: exp.Query) -> bool:
    """Whether a limited query always takes the same rows, or only asks whether there are any."""
    return bool(query.args.get("order")) or isinstance(query.parent, exp.Exists)


def _advise_instead(name: str) -> str:
    if name in _INSTEAD:
        return f"; {_INSTEAD[name]} gives that"
    return "; :clock is the clock of the run" if "date" in name or "time" in name or name == "now" else ""


def _find_written_name(node: exp.Func, text: str) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if "start" in node.meta:
        return text[node.meta["start"] : node.meta["end"] + 1].lower().strip("`")
    return node.sql_name().lower()
