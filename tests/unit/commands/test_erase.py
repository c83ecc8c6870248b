"""Putting people on the list of erased subjects leaves their ids in no record."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errata.errors import UsageError
from support.office import office


@pytest.mark.parametrize("reason", ["A-17 asked", "request of a-b and A-17.", "A-17"])
def test_a_reason_that_names_an_id_is_refused_before_anything_is_recorded(tmp_path: Path, reason: str):
    """The audit keeps reasons for good; a longer word that has the id inside is another word."""
    workspace = office(tmp_path)
    added: list[Any] = []
    engines: Any = workspace.workspace.engines
    engines.erased = SimpleNamespace(
        table="lake.privacy.erased", add=lambda ids: added.append(ids) or len(ids), watermark=lambda: "7"
    )
    before = len(workspace.ledger.audit.entries())
    with pytest.raises(UsageError, match="the reason names one of the ids") as refused:
        workspace.client.erase(["B-1", "A-17"], reason=reason, as_="bo")
    assert "17" not in f"{refused.value}{refused.value.hint}"
    assert (added, len(workspace.ledger.audit.entries())) == ([], before)
    assert workspace.client.erase(["B-1", "A-17"], reason="request A-171 of March", as_="bo").added == 2
