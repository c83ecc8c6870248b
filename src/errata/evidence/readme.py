"""README.txt of a bundle: what lies in it, and how it is verified. Pure."""

from __future__ import annotations

from errata.evidence.members import Dossier

__all__ = ["readme"]


def readme(dossier: Dossier) -> str:
    """What lies in the bundle, and how it is verified, as plain text."""
    run = dossier.run
    return f"""Evidence of run {run["run_id"]}, product {run["product"]}
Reason: {run["reason"]}
State:  {run["state"]} (audit entry {run["head"]["seq"]}, {run["head"]["at"]})

Verify before you read, with the project's public key from someone you trust:

    errata evidence verify {run["run_id"]}.errata --key errata.pub
    python verify.py {run["run_id"]}.errata --key errata.pub      (Python 3.9 or later, package cryptography)

Take verify.py from a release of Errata: the copy in here could be forged together with the rest. It prints its own
SHA-256; the one that made this bundle has
{dossier.environment["verifier_sha256"]}

cover.html                 start here
evidence.dsse.json         the signed index: an in-toto statement with the SHA-256 and size of every other member
manifest.json              the sealed plan, byte for byte; its SHA-256 is what was approved
records/run.json           where the run and each of its partitions stand
records/plan.json          guardrails, rules that were set aside, estimate
records/decisions.json     approvals, releases, accepted warnings
records/work.json          chunks and attempts
records/gate.json          candidates, verdicts, changed thresholds
records/diff.json          what changed: rows and declared metrics
records/publications.json  commits on the table and what took them back
records/environment.json   code, jars, versions
records/people.json        who the pseudonyms are, and what sealed texts say. The other records and the audit hold
                           pseudonyms and sealed texts, so that a person can be forgotten in the ledger without
                           breaking its hashes
measurements/              the numbers that verdicts were made of, by candidate
parts/                     long lists under their SHA-256: files that were read, expected, staged, taken out and
                           put in
audit/entries.jsonl        the audit from this run's first entry to the head. Entries of this run are whole; of
                           other runs there is only the link: a hash of the run's id and a hash of what the entry
                           says
audit/head.dsse.json       the signed head that the entries end in
verify.py                  the verifier

Not in here: rows of data, the transform's code (its digest is), secrets, what other runs' audit entries say.
"""
