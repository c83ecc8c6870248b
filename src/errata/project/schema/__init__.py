"""JSON schemas of project files for editors, generated from the declared keys and stored with this module.

``python -m errata.project.schema`` rewrites them after a key changed; a test fails until that is done.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from errata.project.forms import ProductForm, ProjectForm
from errata.project.yaml.value_reader import derive_model

__all__ = ["FOLDER", "schemas"]

FOLDER = Path(__file__).parent
_VALUES = {"errata": ProjectForm, "product": ProductForm}


def schemas() -> dict[str, str]:
    """File name → schema text, from the current declarations."""
    return {f"{name}.schema.json": _text(derive_model(kind).model_json_schema()) for name, kind in _VALUES.items()}


def _text(schema: dict[str, Any]) -> str:
    headed = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_without_titles(schema)}
    return json.dumps(headed, indent=2, ensure_ascii=False) + "\n"


def _without_titles(schema: Any, *, names: bool = False) -> Any:
    """Remove the titles that pydantic derives from key names, because editors show the names anyway."""
    if isinstance(schema, dict):
        return {
            key: _without_titles(value, names=key in ("properties", "$defs") and not names)
            for key, value in schema.items()
            if names or key != "title"
        }
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema
