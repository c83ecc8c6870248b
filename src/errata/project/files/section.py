"""What all keys of project files have in common. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class FileModel(BaseModel):
    """Keys of one place in a file: no other is known there, and no value is taken for another kind."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=False)


def detect_form(value: Any) -> str:
    """Which of two forms a value has, so that a problem with it is told about the form that was meant."""
    return "<many>" if isinstance(value, (dict, list)) else "<one>"
