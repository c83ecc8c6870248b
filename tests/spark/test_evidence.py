"""Evidence of a real run: published, partly taken back, verified by a Python that has never heard of the lake."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import verify
from support.world import PRODUCT_FILE, World
from unit.evidence.forging import packed, unpacked

Make = Callable[..., World]
PRODUCT = PRODUCT_FILE + ('compare:\n  - {name: gross moved, metric: "sum(gross)", warn: 90%}\nclassified: [account]\n')


def test_a_published_run_is_proven_by_one_file(make_world: Make) -> None:
    """Every record of a run that Spark computed fits its audit, the candidate's files are those on the table, no value
    of a classified column is in it, and the verifier finds a member that was spoilt."""
    world = make_world(days=3, product=PRODUCT, project='evidence: {key: "errata.key"}\n')
    public = generate_key_pair(world.root / "errata.key").pem
    scope = world.days[:2]
    run = world.to("published", f"{scope[0]}..{scope[-1]}")
    view, first = world.client.evidence(run, as_="bo")
    assert view.notes == ()
    assert verify(first, [public]).problems == []
    members = unpacked(first)
    listed = json.loads(members["records/publications.json"])["publications"]
    detail = json.loads(members[f"parts/{listed[0]['details'][-1]}.json"])
    live = world.files()
    for day in scope:
        assert {path for _, path, _ in detail["add"][day]} == live[day]
    changed = json.loads(members["records/diff.json"])
    summary = json.loads(members[f"parts/{changed['summary']}.json"])
    assert sum(part["changed"] for part in summary["partitions"]) == 6
    assert summary["outside"] == {"partitions": 1, "differing": []}
    assert summary["columns"]["gross"]["sum_after"] == str(sum(row[2] for row in world.expected(scope)))
    for account in ("a0", "a1", "a2"):
        assert f'"{account}"'.encode() not in first
    assert "Published." in members["cover.html"].decode()
    world.client.rollback(run, partitions=scope[0], reason="bank asks to wait", as_="bo")
    _, second = world.client.evidence(run, as_="bo")
    assert verify(second, [public]).problems == []
    assert world.client.evidence(run, as_="bo")[1] == second
    place = world.root / "run.errata"
    place.write_bytes(packed(unpacked(second) | {"manifest.json": members["records/run.json"]}))
    (world.root / "verify.py").write_bytes(members["verify.py"])
    command = [sys.executable, "-I", "verify.py", "run.errata", "--key", "errata.key.pub"]
    done = subprocess.run(command, cwd=world.root, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "manifest.json: is not what was signed" in done.stdout
