"""Base class of all sections of project files. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class FileModel(BaseModel):
    """The keys of one section: unknown keys and values of another type are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=False)


def detect_form(value: Any) -> str:
    """Which of two forms a value has, so that an error message refers to the intended form."""
    return "<many>" if isinstance(value, (dict, list)) else "<one>"
