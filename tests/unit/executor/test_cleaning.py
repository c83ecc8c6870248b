"""What cleanup may take away of tables beside a target."""

from __future__ import annotations

from types import SimpleNamespace

from errata.executor.cleaning import _waiting_rows

PAID, OWED = "errata_bf-1-p1_rows1_0a1b2c3d", "errata_bf-1-r2_rows1_4e5f6a7b"


def test_rows_of_a_debt_that_someone_may_be_paying_are_left_alone():
    """Whoever pays writes to such a branch at this moment; an append to a dropped one brings it back from main."""
    ledger = SimpleNamespace(
        debts=lambda _table: (("bf-1", "bf-1-r2", {}), ("bf-2", "bf-2-p1", {})),
        publications=lambda _run: (SimpleNamespace(pub_id="bf-1-p1"), SimpleNamespace(pub_id="bf-1-r2")),
    )
    pins = SimpleNamespace(refs=lambda _table: {"main": "1", PAID: "2", OWED: "3", "errata_bf-2-p1_rows1_00": "4"})
    desk = SimpleNamespace(ledger=ledger, engines=SimpleNamespace(pins=pins))
    publish = SimpleNamespace(corrections="lake.c", versions=None)
    run, manifest = SimpleNamespace(run_id="bf-1", table="lake.t"), SimpleNamespace(publish=publish)
    assert _waiting_rows(desk, run, manifest) == [("lake.c", PAID)]  # type: ignore[arg-type]
