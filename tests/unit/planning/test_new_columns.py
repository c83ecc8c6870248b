"""Columns that a product adds: sealed with the field ids that the table would give, refused where they cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from errata.model.manifest import NewColumn, Override
from errata.planning.build import Plan
from unit.planning.worlds import PRODUCT, TARGET, ask, plan

WIDE = replace(TARGET, last_column_id=40)


def planned(add: Mapping[str, str], **options: Any) -> Plan:
    """A plan of the product with these columns added."""
    product = replace(PRODUCT, target=replace(PRODUCT.target, add_columns=add))
    return plan(options.pop("request", ask()), product=product, target=options.pop("target", WIDE), **options)


def said(made: Plan) -> str:
    return " ".join(verdict.message for verdict in made.verdicts if verdict.rule == "schema")


def test_new_columns_are_sealed_with_the_ids_and_the_schema_they_were_planned_on():
    """In the order of the product file, after the last id that the table ever gave."""
    made = planned({"zeta": "long", "alpha": "decimal(9, 4)"}).manifest
    assert made is not None
    assert made.target.new_columns == (NewColumn("zeta", "long", 41), NewColumn("alpha", "decimal(9, 4)", 42))
    assert (made.target.last_column_id, made.target.schema_id) == (40, TARGET.schema_id)
    assert made.target.columns == {c.name: c.type for c in TARGET.columns} | {"zeta": "long", "alpha": "decimal(9, 4)"}


def test_staged_output_goes_to_a_table_of_the_runs_own_beside_the_target():
    """Its name is the same for the same manifest and another for another."""
    made, again, other = planned({"x": "long"}), planned({"x": "long"}), planned({"x": "int"})
    assert made.manifest is not None
    assert again.manifest is not None
    assert other.manifest is not None
    shadow = made.manifest.target.shadow
    assert shadow is not None
    assert shadow.rpartition(".")[0] == TARGET.table.rpartition(".")[0]
    assert made.manifest.target.staging.table == shadow == again.manifest.target.shadow
    assert other.manifest.target.shadow != shadow


def test_columns_that_are_there_with_the_same_type_make_a_plain_run():
    """After the first publication the product file need not change."""
    there = TARGET.columns[0]
    made = planned({there.name: there.type}).manifest
    assert made is not None
    assert (made.target.new_columns, made.target.shadow, made.target.staging) == ((), None, made.target)


@pytest.mark.parametrize(
    "add, words",
    [
        ({TARGET.columns[0].name: "double"}, "a run adds columns and changes none"),
        ({TARGET.columns[0].name.upper(): TARGET.columns[0].type}, "in case only"),
    ],
)
def test_a_column_of_another_type_or_case_is_refused_and_no_override_helps(add: dict[str, str], words: str):
    """Narrowing would lose values; Spark does not tell upper from lower case."""
    made = planned(add, request=ask(overrides=(Override("schema", "why"),)))
    assert made.is_refused
    assert words in said(made)
    assert "an override cannot set this aside" in said(made)


def test_an_override_of_the_schema_rule_lets_columns_be_left_out_and_is_sealed():
    """What the transform will deliver is not known when planning, so the permission is given ahead."""
    made = planned({}, request=ask(overrides=(Override("schema", "gross is retired"),)))
    assert made.manifest is not None
    assert made.manifest.has_override("schema")
    assert "written as NULL" in said(made)
    assert not planned({}).manifest.has_override("schema")  # type: ignore[union-attr]
