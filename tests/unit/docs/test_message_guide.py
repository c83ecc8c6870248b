"""The messages that the guide shows are those that Errata writes; run this file to write them into the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

from errata.model.consumer.declaration import EVENTS
from errata.model.consumer.message_formats import to_json, to_text
from unit.model.consumer.message_samples import build_sample

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "tell-consumers.md"


def render_examples() -> dict[str, str]:
    """Name of each example in the page, and what it has to show."""
    messages = [build_sample(event) for event in EVENTS]
    listed = "\n".join(f"| `{one.occasion.event}` | **{one.title}**<br>{one.text} |" for one in messages)
    return {
        "messages": f"| event | message |\n|---|---|\n{listed}\n",
        "e-mail": f"```text\n{to_text(build_sample('published'))}```\n",
        "webhook": f"```json\n{json.dumps(to_json(build_sample('published')), indent=2, ensure_ascii=False)}\n```\n",
    }


def fill(page: str) -> str:
    """The page with current examples."""
    for name, shown in render_examples().items():
        pattern = rf"(<!-- example: {name} -->\n).*?(<!-- end -->)"
        page, count = re.subn(pattern, lambda found, text=shown: found[1] + text + found[2], page, flags=re.DOTALL)
        assert count == 1, name
    return page


def test_the_guide_shows_the_messages_that_errata_writes():
    """``python tests/unit/docs/test_message_guide.py`` updates the page."""
    page = PAGE.read_text("utf-8")
    assert fill(page) == page


def test_the_guide_describes_every_field_of_a_message():
    """The body of a webhook is a promise."""
    page = PAGE.read_text("utf-8")
    assert [name for name in to_json(build_sample("published")) if f"`{name}`" not in page] == []


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text("utf-8")), "utf-8")
