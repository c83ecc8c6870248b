"""The recorded story of a table: messages of a real connector, and what the table held at each commit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from support.capture import Mark
from support.change_log import Message

STORY = Path(__file__).parents[1] / "topics" / "samples" / "story"


def read_story(name: str) -> list[Message]:
    """The messages of one topic of the story: orders or transactions."""
    lines = gzip.decompress((STORY / f"{name}.json.gz").read_bytes()).decode().splitlines()
    told = [json.loads(line) for line in lines]
    return [Message(one["topic"], one["partition"], one["offset"], one["value"], one["key"]) for one in told]


def read_marks() -> list[Mark]:
    """What the table held, by position."""
    found: list[dict[str, Any]] = json.loads(gzip.decompress((STORY / "marks.json.gz").read_bytes()))
    return [Mark(**one) for one in found]
