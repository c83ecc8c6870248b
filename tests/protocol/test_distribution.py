"""Distribution rules through the commands: planned, measured, judged, judged again, and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from errata.cli.render.gate import render_validation
from errata.cli.render.plan import render_plan
from errata.errors import NeedsAcceptance, ValidationRejected
from errata.evidence.keys import generate_key_pair, load_signing_key
from errata.evidence.verifier import verify
from errata.ports.measure import PRIOR
from support.memory_world import MemoryWorld as World
from support.world import FIRST, PRODUCT_FILE
from unit.evidence.forging import resealed, unpacked

Make = Callable[..., World]
GATE = "records/gate.json"


def with_rules(*rules: str) -> str:
    """The product with these distribution rules."""
    return PRODUCT_FILE.replace("checks:", "distribution:\n" + "".join(f"  - {{{one}}}\n" for one in rules) + "checks:")


QUANTILES = "column: gross, quantiles: [0.5, 0.95], warn: 5%, block: 60%"
SHARES = "column: account, shares: true, warn: 5%, block: 20%"


def findings(checks: Any, name: str) -> dict[str, tuple[str, str | None]]:
    """Partition → level and value of a rule."""
    return {one["partition"]: (one["level"], one["value"]) for one in checks if one["name"] == name}


def test_halved_quantiles_warn_and_a_person_accepts_them(make_world: Make) -> None:
    """The history is doubled, so every quantile halves; the shares of the accounts stay."""
    world = make_world(days=2, product=with_rules(QUANTILES, SHARES))
    run = world.to("staged")
    with pytest.raises(NeedsAcceptance) as waits:
        world.client.validate(run, as_="ana")
    checks = waits.value.fields["validation"].checks
    assert findings(checks, "quantiles(gross)") == dict.fromkeys(world.days, ("warn", "-50.00%"))
    assert findings(checks, "shares(account)") == dict.fromkeys(world.days, ("ok", "0.00%"))
    world.client.validate(run, accept={"quantiles(gross)": "it was doubled"}, as_="bo")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def test_other_limits_are_judged_without_measuring_again(make_world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """An approver loosens the limit in the file; the stored numbers are judged by it."""
    world = make_world(days=2, product=with_rules(QUANTILES.replace("block: 60%", "block: 40%")))
    run = world.to("staged")
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    numbers = world.ledger.candidates.measurements(run, 1)
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("warn: 5%, block: 40%", "warn: 50%, block: 60%"))
    world.open()
    judged = world.client.validate(run, thresholds="FIN-240: half is right", as_="bo")
    assert judged.passed
    assert findings(judged.checks, "quantiles(gross)") == dict.fromkeys(world.days, ("ok", "-50.00%"))
    assert judged.thresholds[0]["changes"][0]["name"] == "quantiles(gross)"
    assert world.ledger.candidates.measurements(run, 1) == numbers
    assert [one.action for one in world.client.audit_log(run)].count("candidate.measured") == 1


def test_numbers_of_an_earlier_gate_are_the_prior_of_the_next(make_world: Make) -> None:
    """Quantiles and shares too are known where the very files are still there."""
    world = make_world(days=2, product=with_rules(QUANTILES.replace("5%", "55%"), SHARES))
    first = world.to("published")
    second = world.to("validated", reason="again")
    (entry,) = (one for one in world.client.audit_log(second) if one.action == "candidate.measured")
    assert list(entry.body["reused"]) == [first]
    names = {one.name for one in world.ledger.candidates.measurements(second, 1) if one.scope == PRIOR}
    assert {"distribution.quantiles(gross) 0.5", "distribution.shares(account)"} <= names
    world.live(world.days[0])
    third = world.client.plan("fin.sales", partitions=world.days[0], reason="live wrote", as_="ana",
                              supersede=second)  # fmt: skip
    world.client.approve(third.id, digest=third.digest, as_="bo")
    world.client.run(third.id, as_="ana")
    with pytest.raises(ValidationRejected) as refused:  # the account of the live job is gone again
        world.client.validate(third.id, as_="ana")
    assert findings(refused.value.fields["validation"].checks, "shares(account)")[world.days[0]][0] == "block"


def test_days_are_compared_with_the_same_weekdays_around_them(make_world: Make) -> None:
    """The controls are sealed with the plan, shown, and measured; too few of them are a warning."""
    rule = "column: account, shares: true, against: control, weeks: 2, least: 2, warn: 5%"
    world = make_world(days=17, product=with_rules(rule))
    middle = (FIRST + timedelta(days=8)).isoformat()
    plan = world.plan(middle)
    assert plan.gate["distributions"] == 1
    assert plan.gate["control_partitions"] == 2
    run = world.to("validated", middle)
    checks = world.ledger.candidates.latest_verdict(run).checks  # type: ignore[union-attr]
    assert findings(checks, "shares(account) against control") == {middle: ("ok", "0.00%")}
    # one of the two weekdays around it is held by the run above, which is not published yet
    short = world.to("staged", world.days[15])
    with pytest.raises(NeedsAcceptance, match="nothing was compared"):
        world.client.validate(short, as_="ana")


def test_findings_are_printed_with_the_plan_and_the_verdict(make_world: Make) -> None:
    """What the plan will compare, what moved how far, the limits, and the error of quantiles."""
    world = make_world(days=2, product=with_rules(QUANTILES, SHARES))
    plan = world.plan()
    assert any("3 checks, 1 reconciliation, 2 distributions" in line for line in render_plan(plan, 120))
    run = world.to("staged")
    with pytest.raises(NeedsAcceptance) as waits:
        world.client.validate(run, as_="ana")
    text = " ".join(" ".join(render_validation(waits.value.fields["validation"], 120)).split())
    assert "quantiles(gross)" in text
    assert "warns above 5 %, blocks above 60 %; ranks within 0.01 % of the rows" in text


def test_a_product_without_the_rule_seals_no_key_for_it(make_world: Make) -> None:
    """So its digest is what it was before there were distribution rules."""
    world = make_world(days=2)
    plan = world.plan()
    sealed = json.loads(world.client.manifest_bytes(plan.id))
    assert "distribution" not in sealed
    assert "distributions" not in plan.gate


def test_an_auditor_judges_the_rule_again_from_the_numbers(make_world: Make) -> None:
    """A bundle verifies, also after a limit changed; a finding that says less than its numbers does not."""
    world = make_world(
        days=2, product=with_rules(QUANTILES.replace("60%", "40%"), SHARES), project="evidence: {key: errata.key}\n"
    )
    generate_key_pair(world.root / "errata.key")
    public, key = (world.root / "errata.key.pub").read_bytes(), load_signing_key("errata.key", world.root)
    run = world.to("staged")
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("block: 40%", "block: 60%"))
    world.open()
    with pytest.raises(NeedsAcceptance):
        world.client.validate(run, thresholds="half is right", as_="bo")
    world.client.validate(run, accept={"quantiles(gross)": "it was doubled"}, as_="bo")
    world.client.publish(run, as_="bo")
    _, bundle = world.client.evidence(run, as_="bo")
    assert verify(bundle, [public]).problems == []
    levels = [
        {one["level"] for one in row["checks"] if one["name"] == "quantiles(gross)"}
        for row in json.loads(unpacked(bundle)[GATE])["verdicts"]
    ]
    assert levels == [{"block"}, {"warn"}, {"warn"}]

    def lie(gate: Any) -> None:
        for one in gate["verdicts"][-1]["checks"]:
            if one["name"] == "quantiles(gross)":
                one.update(level="ok", accepted_by=None)

    told = [one.problem for one in verify(resealed(bundle, key, gate=lie), [public]).problems if one.member == GATE]
    assert [f"quantiles(gross) of {day} as ok, its numbers make it warn" in text for day, text in
            zip(world.days, told[:2], strict=True)] == [True, True]  # fmt: skip
