"""Files of an evidence bundle and their names. Pure: values in, bytes out.

Names consist of fixed words, numbers and digests, never of text a person typed or of a partition's value. Content that
was hashed before (the manifest, its parts, the intents, measurements of a candidate, audit entries) is included as
exactly the bytes that were hashed, so that a verifier needs only SHA-256 and no canonical form of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from errata.canonical import canonical_bytes

FORMAT = "errata.evidence/1"
_RECORDS = ("run", "plan", "work", "decisions", "gate", "publications", "environment", "diff")


@dataclass(frozen=True, slots=True)
class Dossier:
    """Evidence of one run in its current state; each mapping is a separate record in the bundle."""

    run: Mapping[str, Any]
    plan: Mapping[str, Any]
    work: Mapping[str, Any]
    decisions: Mapping[str, Any]
    gate: Mapping[str, Any]
    publications: Mapping[str, Any]
    environment: Mapping[str, Any]
    diff: Mapping[str, Any]
    manifest: bytes
    entries: bytes
    head: bytes
    parts: Mapping[str, bytes] = field(default_factory=dict)  # by digest
    measurements: Mapping[int, bytes] = field(default_factory=dict)  # by number of the candidate
    campaign: Mapping[str, Any] | None = None  # that the run is a member of; its manifest is a part
    people: Mapping[str, Any] = field(default_factory=lambda: {"names": {}, "texts": {}})
    """Names behind pseudonyms and plain text of sealed texts; the other records are as stored and hashed."""

    @property
    def predicate(self) -> dict[str, Any]:
        """Statement of the signed index about the run itself."""
        names = ("run_id", "ledger_id", "project", "product", "table", "state", "manifest_digest")
        return {"format": FORMAT, **{name: self.run[name] for name in names}}

    def readable(self) -> Dossier:
        """A copy with names and plain text instead of pseudonyms and sealed texts."""
        told = {**self.people["names"], **self.people["texts"]}
        return replace(self, **{name: _substitute_texts(getattr(self, name), told) for name in _RECORDS})


def _substitute_texts(stored: Any, told: Mapping[str, str]) -> Any:
    match stored:
        case str():
            return told.get(stored, stored)
        case Mapping():
            return {key: _substitute_texts(item, told) for key, item in stored.items()}
        case list() | tuple():
            return [_substitute_texts(item, told) for item in stored]
        case _:
            return stored


def build_members(dossier: Dossier, cover: str, readme: str) -> dict[str, bytes]:
    """All members except the signed index, by name."""
    found = {f"records/{name}.json": canonical_bytes(getattr(dossier, name)) for name in (*_RECORDS, "people")}
    if dossier.campaign is not None:
        found["records/campaign.json"] = canonical_bytes(dossier.campaign)
    found |= {f"parts/{digest}.json": content for digest, content in dossier.parts.items()}
    found |= {f"measurements/c{n}.json": content for n, content in dossier.measurements.items()}
    return found | {
        "manifest.json": dossier.manifest,
        "audit/entries.jsonl": dossier.entries,
        "audit/head.dsse.json": dossier.head,
        "cover.html": cover.encode(),
        "README.txt": readme.encode(),
        "verify.py": read_verifier_source(),
    }


def read_verifier_source() -> bytes:
    """The stand-alone verifier: the same file that ``errata evidence verify`` runs."""
    return (files("errata.evidence") / "verifier.py").read_bytes()


_RECEIPTS = """; and for every receipt of a delivery to a copy, which
                           records/publications.json names: what each partition held in the lake, in staging, in
                           the copy before its commit and in the copy afterwards"""


def render_readme(dossier: Dossier) -> str:
    """Plain text that lists the members of the bundle and how to verify it."""
    run = dossier.run
    copies = any(one["effect"] == "copy" for one in dossier.publications.get("owed", ()))
    return f"""Evidence of run {run["run_id"]}, product {run["product"]}
Reason: {run["reason"]}
State:  {run["state"]} (audit entry {run["head"]["seq"]}, {run["head"]["at"]})

Verify before you read, with the project's public key from someone you trust:

    errata evidence verify {run["run_id"]}.errata --key errata.key.pub
    python verify.py {run["run_id"]}.errata --key errata.key.pub      (Python 3.9 or later, package cryptography)

Take verify.py from a release of Errata: the copy in here could be forged together with the rest. It prints its own
SHA-256; the one that made this bundle has
{dossier.environment["verifier_sha256"]}

cover.html                 start here
evidence.dsse.json         the signed index: an in-toto statement with the SHA-256 and size of every other member
manifest.json              the sealed plan, byte for byte; its SHA-256 is what was approved, unless the run is a
                           member of a campaign: then it follows from the campaign that was approved
records/run.json           state of the run and of each partition
records/plan.json          guardrails, rules that were set aside, estimate
records/decisions.json     approvals, releases, accepted warnings
records/campaign.json      only of a member of a campaign: the campaign whose digest was approved, and what the
                           member's plan was derived from
records/work.json          chunks and attempts
records/gate.json          candidates, verdicts, changed thresholds
records/diff.json          what changed: rows and declared metrics
records/publications.json  commits on the table and what took them back; what they owed, such as messages
records/environment.json   code, jars, versions
records/people.json        who the pseudonyms are, and what sealed texts say. The other records and the audit hold
                           pseudonyms and sealed texts, so that a person can be forgotten in the ledger without
                           breaking its hashes
measurements/              the numbers that verdicts were made of, by candidate
parts/                     long lists under their SHA-256: files that were read, expected, staged, taken out and
                           put in{_RECEIPTS if copies else ""}
audit/entries.jsonl        the audit from this run's first entry to the head, or from the first decision on its
                           campaign or standing approval. Entries of these are whole; of others there is only the
                           link: a hash of the run's id and a hash of what the entry says
audit/head.dsse.json       the signed head that the entries end in
verify.py                  the verifier

Not in here: rows of data, the transform's code (its digest is), secrets, what other runs' audit entries say.
"""
