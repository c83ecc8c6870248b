from __future__ import annotations

import json

from errata.project.schema import FOLDER, schemas


def test_the_shipped_schemas_are_current():
    """Run `python -m errata.project.schema` after changing a key."""
    shipped = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert shipped == schemas()


def test_editors_learn_every_key_and_that_there_are_no_others():
    """The schema closes each object and keeps the words of the file, not of the code."""
    text = schemas()["product.schema.json"]
    product = json.loads(text)
    assert product["additionalProperties"] is False
    assert {"product", "owner", "target", "transform", "inputs"} == set(product["required"])
    assert {"mustBeGreaterThan", "validValues", "metric"} <= set(product["$defs"]["Check"]["properties"])
    assert "must_be" not in text
