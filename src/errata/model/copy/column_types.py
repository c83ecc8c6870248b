"""Which column of a warehouse can hold every value of a type of the lake, and give it back as it was. Pure."""

from __future__ import annotations

import re

from errata.model.copy.row_text import find_type_refusal

_POSTGRES = {
    "boolean": ("boolean",),
    "int": ("integer", "bigint"),
    "long": ("bigint",),
    "float": ("real", "double precision"),
    "double": ("double precision",),
    "date": ("date",),
    "timestamp": ("timestamp without time zone",),
    "timestamptz": ("timestamp with time zone",),
    "string": ("text", "character varying"),
}
_DECIMAL = re.compile(r"(?:decimal|numeric)\((\d+), ?(\d+)\)")
_LIMITED = re.compile(r"character varying\(\d+\)")


def to_postgres_type(kind: str) -> str:
    """The type in which staging in PostgreSQL holds values of a type of the lake.

    >>> to_postgres_type("decimal(12, 2)"), to_postgres_type("timestamptz")
    ('numeric(12,2)', 'timestamp with time zone')
    """
    if found := _DECIMAL.fullmatch(kind):
        return f"numeric({found[1]},{found[2]})"
    return _POSTGRES[kind][0]


def find_postgres_problem(kind: str, found: str) -> str | None:
    """Why a column of PostgreSQL cannot hold a column of the lake exactly; None: it can.

    >>> find_postgres_problem("decimal(12, 2)", "numeric(14,2)"), find_postgres_problem("long", "bigint")
    (None, None)
    >>> find_postgres_problem("decimal(12, 2)", "numeric")
    'expected numeric(12,2), found numeric'
    >>> find_postgres_problem("array<long>", "bigint[]")
    'engines write lists as text in different ways'
    """
    if refusal := find_type_refusal(kind):
        return refusal
    if wanted := _DECIMAL.fullmatch(kind):
        has = _DECIMAL.fullmatch(found)
        # in numeric without a scale, a digit too many would not be found
        if has and has[2] == wanted[2] and int(has[1]) >= int(wanted[1]):
            return None
        return f"expected numeric({wanted[1]},{wanted[2]}), found {found}"
    # a text that is too long is refused by the warehouse, and is never cut
    if found in _POSTGRES[kind] or (kind == "string" and _LIMITED.fullmatch(found)):
        return None
    return f"expected {' or '.join(_POSTGRES[kind])}, found {found}"


_SNOWFLAKE = {
    "boolean": "BOOLEAN",
    "int": "NUMBER(10,0)",
    "long": "NUMBER(19,0)",
    "float": "FLOAT",
    "double": "FLOAT",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ(6)",
    "timestamptz": "TIMESTAMP_LTZ(6)",
    "string": "VARCHAR",
}
_NUMBER = re.compile(r"NUMBER\((\d+),(\d+)\)")
_MOMENTS = {
    "timestamp": re.compile(r"TIMESTAMP_NTZ\(([6-9])\)"),
    "timestamptz": re.compile(r"TIMESTAMP_(?:LTZ|TZ)\(([6-9])\)"),
}
_TEXT = re.compile(r"(?:VARCHAR|TEXT|STRING)(?:\(\d+\))?")


def to_snowflake_type(kind: str) -> str:
    """The type in which staging in Snowflake holds values of a type of the lake.

    >>> to_snowflake_type("decimal(12, 2)"), to_snowflake_type("long")
    ('NUMBER(12,2)', 'NUMBER(19,0)')
    """
    if found := _DECIMAL.fullmatch(kind):
        return f"NUMBER({found[1]},{found[2]})"
    return _SNOWFLAKE[kind]


def find_snowflake_problem(kind: str, found: str) -> str | None:
    """Why a column of Snowflake cannot hold a column of the lake exactly; None: it can.

    >>> find_snowflake_problem("decimal(12, 2)", "NUMBER(38,2)"), find_snowflake_problem("int", "NUMBER(38,0)")
    (None, None)
    >>> find_snowflake_problem("decimal(12, 2)", "NUMBER(38,6)")
    'expected NUMBER(12,2), found NUMBER(38,6)'
    >>> find_snowflake_problem("timestamptz", "TIMESTAMP_NTZ(9)")
    'expected TIMESTAMP_LTZ(6), found TIMESTAMP_NTZ(9)'
    """
    if refusal := find_type_refusal(kind):
        return refusal
    wanted = to_snowflake_type(kind)
    if number := _NUMBER.fullmatch(wanted):
        has = _NUMBER.fullmatch(found)
        # with more digits after the point, a difference in them would be rounded away when rows are compared
        is_fine = has is not None and has[2] == number[2] and int(has[1]) >= int(number[1])
    elif kind in _MOMENTS:
        is_fine = _MOMENTS[kind].fullmatch(found) is not None
    else:
        # a text that is too long is refused by the warehouse, and is never cut
        is_fine = found == wanted or (kind == "string" and _TEXT.fullmatch(found) is not None)
    return None if is_fine else f"expected {wanted}, found {found}"


def find_column_problem(warehouse: str, kind: str, found: str) -> str | None:
    """Why a column of a warehouse of this type cannot hold a column of the lake exactly; None: it can."""
    return _FINDERS[warehouse](kind, found)


_FINDERS = {"postgres": find_postgres_problem, "snowflake": find_snowflake_problem}
