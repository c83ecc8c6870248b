"""Types of source columns as text, and which literals are values of them."""

from __future__ import annotations

import pytest

from errata.model.types import is_valid_literal


@pytest.mark.parametrize(
    "text, kind",
    [
        (None, "date"),
        ("any", "string"),
        ("true", "boolean"),
        ("-2147483648", "int"),
        ("9223372036854775807", "long"),
        ("+1", "int"),
        ("1e10", "double"),
        ("-.5", "float"),
        ("0e0", "double"),
        ("3.4028235e38", "float"),
        ("1.50", "decimal(2, 1)"),
        ("99999999999999999999999999999999999999", "decimal(38, 0)"),
        ("2024-02-29", "date"),
        ("2024-01-01T00:00:00", "timestamp"),
        ("2024-01-01 23:59:59.123456", "timestamp"),
        ("2024-01-01T00:00:00Z", "timestamptz"),
        ("2024-01-01T00:00:00.5-18:00", "timestamptz"),
    ],
)
def test_values_of_a_type(text: str | None, kind: str):
    """Written completely, in ASCII, and exactly what the column can hold."""
    assert is_valid_literal(text, kind)


@pytest.mark.parametrize(
    "text, kind",
    [
        ("True", "boolean"),
        ("1_000", "int"),
        ("\u0663", "int"),
        (" 1", "long"),
        ("1\n", "int"),
        ("2147483648", "int"),
        ("9223372036854775808", "long"),
        ("1.0", "long"),
        ("1_0.5", "double"),
        ("\u0663.5", "double"),
        ("1e999", "double"),
        ("1e-999", "double"),
        ("1e39", "float"),
        ("1e-60", "float"),
        ("nan", "double"),
        ("Infinity", "float"),
        ("1_0", "decimal(9, 2)"),
        ("NaN", "decimal(9, 2)"),
        ("1e999999999", "decimal(9, 2)"),
        ("1e9999999999999999999", "decimal(9, 2)"),
        ("10", "decimal(2, 1)"),
        ("1234567890123456789012345678.5", "decimal(38, 0)"),
        ("20240101", "date"),
        ("2024-W01-1", "date"),
        ("2023-02-29", "date"),
        ("2024-01-01", "timestamp"),
        ("20240101T000000", "timestamp"),
        ("2024-W01-1T00:00:00", "timestamp"),
        ("2024-01-01T00:00:00,5", "timestamp"),
        ("2024-01-01T00:00:00.1234567", "timestamp"),
        ("2024-01-01T24:00:00", "timestamp"),
        ("2024-01-01T00:00:00Z", "timestamp"),
        ("2024-01-01T00:00:00", "timestamptz"),
        ("2024-01-01T00:00:00+19:00", "timestamptz"),
        ("2024-01-01T00:00:00+0100", "timestamptz"),
        ("00", "binary"),
    ],
)
def test_what_is_no_value_of_a_type(text: str, kind: str):
    """Other digits, marks between digits, short forms, and what would overflow, vanish or be rounded."""
    assert not is_valid_literal(text, kind)
