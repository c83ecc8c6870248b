"""Which tables and columns a query names, and which it returns, as far as names tell. Pure.

Names are followed through sub-queries, common table expressions and stars. Where one source is not known (a lateral
view, a pivot, files without declared columns), columns that may come from it are not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.scope import Scope, traverse_scope

from errata.planning.sql.flaw import SqlFlaw, SqlSurroundings, find_line, suggest

_UNITS = frozenset(
    {"year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond"}
)
"""Words that are a unit and no column as the argument of a function: ``timestampadd(MONTH, …)``."""

Names = frozenset[str]


def find_column_flaws(tree: exp.Expr, around: SqlSurroundings) -> Iterator[SqlFlaw]:
    """Unknown inputs and columns, and a result that does not fit the target."""
    # names do not differ by case in Spark, quoted or not
    lowered = normalize_identifiers(tree.copy(), dialect="spark")
    inputs = {
        name.lower(): None if known is None else frozenset(column.lower() for column in known)
        for name, known in around.inputs.items()
    }
    try:
        scopes = traverse_scope(lowered)
    except OptimizeError as error:  # an alias given twice
        yield SqlFlaw(None, f"not Spark SQL: {error}")
        return
    reader = _NameReader(inputs, scopes)
    lambdas = {name.name for scope in lowered.find_all(exp.Lambda) for name in scope.expressions}
    for scope in scopes:
        yield from _find_unknown_tables(scope, inputs)
        yield from reader.find_unknown_columns(scope, lambdas)
    if scopes:
        yield from _find_output_flaws(scopes[-1], reader, around)


def _find_unknown_tables(scope: Scope, inputs: Collection[str]) -> Iterator[SqlFlaw]:
    for table in scope.tables:
        if not isinstance(table.this, exp.Identifier):
            continue  # a function such as range()
        name = ".".join(part.name for part in table.parts)
        if name not in inputs and not isinstance(scope.sources.get(table.alias_or_name), Scope):
            known = ", ".join(inputs)
            yield SqlFlaw(
                find_line(table), f"{name}: expected an input of the product ({known}){suggest(name, inputs)}"
            )


class _NameReader:
    """Columns of the sources of a query; None where they are not known."""

    def __init__(self, inputs: dict[str, Names | None], scopes: list[Scope]) -> None:
        self._inputs = inputs
        self._scopes = scopes

    def find_unknown_columns(self, scope: Scope, lambdas: Collection[str]) -> Iterator[SqlFlaw]:
        """Columns of this part of the query that none of its sources has."""
        if not isinstance(scope.expression, exp.Select):
            return
        visible, complete = self._list_visible(scope)
        for column in scope.columns:
            first = column.parts[0].name
            if column.parent_select is not scope.expression:  # of a sub-query, which is a scope of its own
                continue
            if isinstance(column.this, exp.Star) or first in lambdas or _is_unit(column):
                continue
            known: Names | None
            if len(column.parts) > 1 and first in scope.sources:
                name, known = column.parts[1].name, self._read_source(scope.sources[first])
                if known is not None and name not in known:
                    told = f"{first}.{name}: expected a column of {first}"
                    yield SqlFlaw(find_line(column), told + suggest(name, known))
            elif complete and first not in visible and not _is_source_around(scope, first):
                told = f"{column.sql('spark')}: expected a column of {', '.join(scope.selected_sources) or 'a table'}"
                yield SqlFlaw(find_line(column), told + suggest(first, visible))

    def _list_visible(self, scope: Scope) -> tuple[Names, bool]:
        """Names that an unqualified column may be, and whether these are all of them."""
        select, found = scope.expression, set[str]()
        complete = not scope.pivots and not scope.udtf_scopes and not select.args.get("laterals")
        for _, source in scope.selected_sources.values():
            names = self._read_source(source)
            complete = complete and names is not None
            found |= names or set()
        found |= {one.alias_or_name for one in select.expressions}  # ORDER BY, HAVING and later columns may name them
        if scope.parent is not None and scope.parent is not scope:
            around, all_around = self._list_visible(scope.parent)
            found |= around
            complete = complete and all_around
        return frozenset(found), complete

    def _read_source(self, source: exp.Expr | Scope) -> Names | None:
        if isinstance(source, Scope):
            names = self.read_outputs(source)
            return None if names is None else frozenset(names)
        is_input = (
            isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and not source.args.get("db")
        )
        # renamed columns, FROM t AS u(a, b), are not followed
        if not is_input or source.alias_column_names or source.args.get("pivots"):
            return None
        return self._inputs.get(source.name)

    def read_outputs(self, scope: Scope) -> list[str] | None:
        """Names of the columns that a part of the query returns, in order."""
        if scope.outer_columns:
            return list(scope.outer_columns)
        query = scope.expression
        if isinstance(query, exp.SetOperation):
            return self.read_outputs(scope.set_operation_scopes[0]) if scope.set_operation_scopes else None
        if not isinstance(query, exp.Select):
            return None
        found: list[str] = []
        for one in query.expressions:
            names = self._expand_star(scope, one) if one.is_star else [one.alias_or_name]
            if names is None or not all(names):
                return None
            found += names
        return found

    def _expand_star(self, scope: Scope, star: exp.Expr) -> list[str] | None:
        plain = star.this if isinstance(star, exp.Column) else star
        if not isinstance(plain, exp.Star) or any(plain.args.get(key) for key in ("except_", "replace", "rename")):
            return None
        if scope.pivots or scope.udtf_scopes or scope.expression.args.get("laterals"):
            return None
        sources = {name: source for name, (_, source) in scope.selected_sources.items()}
        wanted = [star.table] if isinstance(star, exp.Column) and star.table else list(sources)
        if len(wanted) != 1 or wanted[0] not in sources:
            return None  # joins may merge columns
        names = self._read_source(sources[wanted[0]])
        return None if names is None else sorted(names)


def _is_unit(column: exp.Column) -> bool:
    return len(column.parts) == 1 and column.name in _UNITS and isinstance(column.parent, exp.Func)


def _is_source_around(scope: Scope, name: str) -> bool:
    around: Scope | None = scope
    while around is not None:
        if name in around.sources:
            return True
        around = around.parent
    return False


def _find_output_flaws(root: Scope, reader: _NameReader, around: SqlSurroundings) -> Iterator[SqlFlaw]:
    query = root.expression
    while isinstance(query, (exp.SetOperation, exp.Subquery)):
        query = query.this
    for one in query.expressions if isinstance(query, exp.Select) else ():
        if not one.is_star and not one.alias_or_name:
            yield SqlFlaw(
                find_line(one) or find_line(query), f"{one.sql('spark')}: expected a name for this column: AS …"
            )
    names = reader.read_outputs(root)
    if names is None:
        return
    yield from _find_unknown_outputs(query, names, around)
    for name in around.needed:
        if name.lower() not in names:
            yield SqlFlaw(find_line(query), f"the result lacks {name}, which {around.target} needs")
    for name in around.nullable:
        if name.lower() not in names:
            said = f'the result lacks {name} of {around.target}; only a plan with --override schema="WHY" writes NULL'
            yield SqlFlaw(find_line(query), said, "warning")


def _find_unknown_outputs(query: exp.Expr, names: list[str], around: SqlSurroundings) -> Iterator[SqlFlaw]:
    if around.outputs is None:
        return
    allowed = {name.lower(): name for name in around.outputs}
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield SqlFlaw(_find_output_line(query, name), f"{name}: expected each column once")
        if name not in allowed and name not in {one.lower() for one in around.ignored}:
            said = f"{name}: expected a column of {around.target}{suggest(name, allowed)}"
            yield SqlFlaw(_find_output_line(query, name), said)


def _find_output_line(query: exp.Expr, name: str) -> int | None:
    found = next((one for one in query.expressions if one.alias_or_name == name), query)
    return find_line(found)
