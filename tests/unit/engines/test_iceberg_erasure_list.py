from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

from errata.engines.iceberg.metadata.erasure_list import IcebergErasureList
from errata.engines.iceberg.metadata.tables import TableLoader
from unit.engines.conftest import Lake, on


def test_who_was_added_by_a_try_without_an_answer_is_counted_once(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    """The second try finds them listed; they were not there before, so they are not told as known already."""
    lake.create("t", ("day", IdentityTransform()), rows=[on("2026-01-01")])
    erased = IcebergErasureList(TableLoader({"lake": lake.catalog}), "lake.fin.erased", lambda: b"k" * 32)
    assert erased.add(["ana"]) == 1
    append, lost = Table.append, []

    def lose_the_answer(self: Table, *rows: Any, **options: Any) -> None:
        append(self, *rows, **options)
        if not lost:
            lost.append(self)
            raise ConnectionResetError("cut")

    monkeypatch.setattr(Table, "append", lose_the_answer)
    assert erased.add(["ana", "bo", "cy"]) == 2
    assert lost
    assert erased.add(["ana", "bo", "cy"]) == 0
