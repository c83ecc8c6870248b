"""Flaws of a query that its words alone show: brackets without a partner, commas without a successor. Pure.

The parser passes over both, and Spark refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from errata.planning.sql.flaw import SqlFlaw

_CLOSING = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]"}
_OPENING = {TokenType.R_PAREN: "(", TokenType.R_BRACKET: "["}
_NEVER_AFTER_COMMA = (
    TokenType.COMMA,
    TokenType.R_PAREN,
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.ORDER_BY,
    TokenType.HAVING,
    TokenType.UNION,
    TokenType.SEMICOLON,
)


def find_token_flaw(tokens: Sequence[Token]) -> SqlFlaw | None:
    """The first bracket or comma that cannot be right, with its line."""
    return _find_bracket_flaw(tokens) or _find_comma_flaw(tokens)


def _find_bracket_flaw(tokens: Sequence[Token]) -> SqlFlaw | None:
    open_brackets: list[Token] = []
    for token in tokens:
        if token.token_type in _CLOSING:
            open_brackets.append(token)
        wanted = _OPENING.get(token.token_type)
        if wanted and (not open_brackets or open_brackets.pop().text != wanted):
            return SqlFlaw(token.line, f"not Spark SQL: {token.text} closes no {wanted}")
    if not open_brackets:
        return None
    last = open_brackets[-1]
    return SqlFlaw(last.line, f"not Spark SQL: {last.text} is never closed; expected {_CLOSING[last.token_type]}")


def _find_comma_flaw(tokens: Sequence[Token]) -> SqlFlaw | None:
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        if token.token_type is TokenType.COMMA and (after is None or after.token_type in _NEVER_AFTER_COMMA):
            found = "the end" if after is None else after.text
            return SqlFlaw(token.line, f"not Spark SQL: expected something between the comma and {found}")
    return None
