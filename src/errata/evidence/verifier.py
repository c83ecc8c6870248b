"""Verify an evidence bundle of Errata: one file; needs Python 3.9 or later and the package ``cryptography``.

    python verify.py BUNDLE --key PUBLIC_KEY [--key …] [--head SIGNED_HEAD …] [--json]

Neither ledger nor lake nor Errata is needed, and nothing is unpacked or run. In this order: the signature of the index;
exactly the members that the index lists, byte for byte; then what they say, held against each other: the plan that was
approved is the plan that was published, by other people than the one who asked; the audit links up to a signed head and
hides no entry of this run; distribution rules are judged again from the stored numbers; the candidate that passed the
gate is the one whose files were published; every change of state was allowed.

A copy of this file is in every bundle. Whoever can forge a bundle can forge that copy, so take this file from a release
of Errata and hold the digest that it prints against the release's. The public key, too, must come from elsewhere.

Pure but for :func:`main`, which reads the files it is told. Digests are always taken of the very bytes that are parsed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.util
import io
import json
import math
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = [
    "INDEX",
    "PAYLOAD_TYPE",
    "PREDICATE",
    "STATEMENT",
    "Problem",
    "Report",
    "archive",
    "lines",
    "unusable",
    "verify",
]

STATEMENT = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE = "urn:errata:evidence:1"
HEAD_TYPE = "application/vnd.errata.audit-head+json"
HEAD_FORMAT = "errata.audit-head/1"
INDEX = "evidence.dsse.json"
MANIFEST = "manifest.json"
RUN, PLAN, WORK = "records/run.json", "records/plan.json", "records/work.json"
DECISIONS, GATE, PUBLICATIONS = "records/decisions.json", "records/gate.json", "records/publications.json"
DIFF, PEOPLE = "records/diff.json", "records/people.json"
CAMPAIGN = "records/campaign.json"  # only of a member of a campaign
ENTRIES, HEAD = "audit/entries.jsonl", "audit/head.dsse.json"
KEPT_HEAD = "the kept head"
MUST = (MANIFEST, RUN, PLAN, WORK, DECISIONS, GATE, PUBLICATIONS, DIFF, PEOPLE, ENTRIES, HEAD)

IN_PLACE = ("replace_partitions", "append", "merge")

MAX_BYTES = 1 << 30
MAX_MEMBERS = 20_000
MAX_INDEX = 16 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*){0,3}")
_HEX = re.compile(r"[0-9a-f]{64}")
_STOP = ("cancelled", "expired")
_JUDGED = ("validated", "rejected", "needs_acceptance")
_ANSWERED = ("attested", "differs")
STANDING = ("standing.approved", "standing.revoked")  # audit actions of decisions on a standing approval
BASELINE = "copy.baseline"  # the audit action of a person who accepts what a copy of the table holds
STANDING_RULE = "standing approval: "  # comparisons by which the gate judges the limits of a standing approval
CHECKING = ("attest", "reconcile")  # kinds that change nothing: they need no approval, and are never published
MOVES: dict[str, tuple[str, ...]] = {
    "planned": ("approved", "declined", "running", *_STOP),
    "approved": ("running", *_STOP),
    "running": ("paused", "staged", "failed", "publishing", "part_published", *_JUDGED, *_STOP),
    "paused": ("running", "staged", "part_published", *_JUDGED, *_STOP),
    "failed": ("running", *_STOP),
    "staged": (*_JUDGED, *_ANSWERED, "running", *_STOP),
    "rejected": (*_JUDGED, "running", *_STOP),
    "needs_acceptance": (*_JUDGED, "running", *_STOP),
    "validated": ("publishing", "rejected", "needs_acceptance", "running", *_STOP),
    "publishing": (*_JUDGED, "published", "part_published", "staged", "running"),
    "part_published": (*_JUDGED, "publishing", "running", "staged", "rolled_back", "superseded", *_STOP),
    "published": ("rolled_back", "superseded"),
    "superseded": ("published", "part_published", "rolled_back"),
    "rolled_back": (), "declined": (), "attested": (), "differs": (),
    "cancelled": ("rolled_back", "superseded"), "expired": ("rolled_back", "superseded"),
}  # fmt: skip


# what meets a record that has another shape than ours; nothing that was signed may stop the verifier from saying so
_STRANGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, OverflowError)


class Problem(NamedTuple):
    """What is wrong, and in which member; an empty member is the bundle as a whole."""

    member: str
    problem: str


class Refused(Exception):
    """A member that cannot be read any further."""

    def __init__(self, member: str, problem: str) -> None:
        super().__init__(problem)
        self.found = Problem(member, problem)


@dataclass
class Report:
    """The outcome: ``warnings`` are no problems, but an auditor should know of them."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
    signed_by: str = ""
    head: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def data(self) -> dict[str, Any]:
        """As JSON."""
        told = {name: self.run.get(name) for name in ("run_id", "product", "state", "manifest_digest")}
        problems = [{"member": one.member, "problem": one.problem} for one in self.problems]
        return {
            "ok": self.ok, **told, "members": self.members, "signed_by": self.signed_by, "head": self.head,
            "problems": problems, "warnings": self.warnings, "verifier": own_digest(),
        }  # fmt: skip


def verify(content: bytes, keys: Sequence[bytes], heads: Sequence[bytes] = ()) -> Report:
    """Judge a bundle by public keys (PEM); ``heads`` are signed heads that were kept elsewhere."""
    report = Report()
    try:
        known = {key_id(pem): _public(pem) for pem in keys}
        members = _members(content, known, report)
        if report.ok:
            _Case(members, known, heads, report).judge()
    except Refused as refused:
        report.problems.append(refused.found)
    except _STRANGE as problem:
        report.problems.append(Problem("", f"a record is not what this verifier understands ({_strange(problem)})"))
    return report


def unusable(keys: Mapping[str, bytes], heads: Mapping[str, bytes]) -> str:
    """What is wrong with the files, by name, that a bundle is to be held against; it says nothing about the bundle."""
    for name, pem in keys.items():
        try:
            _public(pem)
        except Refused as refused:
            return f"{name} was refused; {refused.found.problem}, the .pub beside the private key"
    for name, envelope in heads.items():
        try:
            kind = parsed(name, envelope)["payloadType"]
        except (Refused, KeyError, TypeError):
            return f"{name} was refused; expected a signed head as `errata audit head` writes it"
        if kind != HEAD_TYPE:
            return f"{name} was refused; expected a signed head ({HEAD_TYPE}), found {_shown(str(kind))}"
    return ""


# ------------------------------------------------------------------------------------------------------ the container


def archive(members: Mapping[str, bytes]) -> Iterator[bytes]:
    """These members as a zip, in pieces: stored, sorted, without times. The same members are always the same bytes."""
    offset, directory = 0, []
    for name in sorted(members):
        content, raw = members[name], name.encode("ascii")
        same = struct.pack(
            "<HHHHHIIIHH", 20, 0, 0, 0, 33, zlib.crc32(content), len(content), len(content), len(raw), 0
        )  # fmt: skip
        directory.append(
            b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + same
            + struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, offset) + raw
        )  # fmt: skip
        yield b"PK\3\4" + same + raw
        yield content
        offset += 30 + len(raw) + len(content)
    listed = b"".join(directory)
    yield listed
    yield b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(listed), offset, 0)


def _members(content: bytes, keys: Mapping[str, Any], report: Report) -> dict[str, bytes]:
    """The members, once the index is signed and lists exactly these bytes."""
    found = _unpacked(content, report.problems)
    if INDEX not in found:
        raise Refused(INDEX, "the signed index is missing; nothing in this file is to be trusted")
    payload, report.signed_by = opened(INDEX, found.pop(INDEX), PAYLOAD_TYPE, keys)
    statement = parsed(INDEX, payload)
    try:
        if (statement["_type"], statement["predicateType"]) != (STATEMENT, PREDICATE):
            raise Refused(INDEX, f"expected a statement of type {PREDICATE}")
        listed = {one["name"]: (one["digest"]["sha256"], one["annotations"]["size"]) for one in statement["subject"]}
        if len(listed) != len(statement["subject"]):
            raise Refused(INDEX, "a member is listed twice")
        report.run = dict(statement["predicate"])
    except (KeyError, TypeError, ValueError):
        raise Refused(INDEX, "the index is not what this verifier understands") from None
    report.members = sorted(listed)
    for name in sorted({*listed, *found, *MUST}):
        if name not in listed:
            said = "is not in the signed index: it was added" if name in found else "is not in the signed index"
        elif name not in found:
            said = "is missing"
        elif (sha256(found[name]), len(found[name])) != listed[name]:
            said = "is not what was signed: its bytes were altered or swapped"
        else:
            continue
        report.problems.append(Problem(name, said))
    if report.ok and not _is_archive(content, {**found, INDEX: _raw(content, INDEX)}):
        report.problems.append(Problem("", "the file holds more, or other, bytes than its members make"))
    return found


def _raw(content: bytes, name: str) -> bytes:
    return _unpacked(content, [])[name]


def _is_archive(content: bytes, members: Mapping[str, bytes]) -> bool:
    view, at = memoryview(content), 0
    for piece in archive(members):
        if view[at : at + len(piece)] != piece:
            return False
        at += len(piece)
    return at == len(content)


def _unpacked(content: bytes, problems: list[Problem]) -> dict[str, bytes]:
    """Members by name, without unpacking anything; what no bundle has is a problem and is not read."""
    if len(content) > MAX_BYTES:
        raise Refused("", f"expected at most {MAX_BYTES} bytes, found {len(content)}")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as opened_:
            listed = opened_.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError, OverflowError):
        raise Refused("", "expected an evidence bundle, found a file that is no zip archive") from None
    if len(listed) > MAX_MEMBERS:
        raise Refused("", f"expected at most {MAX_MEMBERS} members, found {len(listed)}")
    found: dict[str, bytes] = {}
    for info in listed:
        name = info.orig_filename
        said = _unsafe(info) or ("is there twice" if name in found else "")
        raw = b"" if said else _stored(content, info)
        if said or raw is None:
            problems.append(Problem(_shown(name), said or "is cut off or overlaps another"))
        else:
            found[name] = raw
    return found


def _unsafe(info: zipfile.ZipInfo) -> str:
    kind = info.external_attr >> 28
    if not _NAME.fullmatch(info.orig_filename) or len(info.orig_filename) > 200:
        return "has a name that no bundle has: absolute, outside, or not one of ours"
    if kind not in (0, 0o10):
        return "is no plain file but a link, a directory or a device"
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        return "is compressed; members of a bundle are stored, and this one was not read"
    return "is encrypted" if info.flag_bits & 1 else ""


def _stored(content: bytes, info: zipfile.ZipInfo) -> bytes | None:
    at = info.header_offset
    if at < 0 or content[at : at + 4] != b"PK\3\4" or at + 30 > len(content):
        return None
    names, extra = struct.unpack("<HH", content[at + 26 : at + 30])
    if content[at + 30 : at + 30 + names] != info.orig_filename.encode("utf-8", "replace"):
        return None
    start = at + 30 + names + extra
    raw = content[start : start + info.file_size]
    return raw if len(raw) == info.file_size else None


def _shown(name: str) -> str:
    return _plain(name)[:200]


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)


# ------------------------------------------------------------------------------------------------- bytes, JSON, keys


def sha256(content: bytes) -> str:
    """Bare 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def parsed(member: str, content: bytes) -> Any:
    """JSON in which no key stands twice and every number is one."""
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refused(member, "is not JSON, or has a key twice") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(word)


def opened(member: str, envelope: bytes, payload_type: str, keys: Mapping[str, Any]) -> tuple[bytes, str]:
    """What a DSSE envelope holds and whose key signed it; the envelope itself may not have a byte too many."""
    from cryptography.exceptions import InvalidSignature

    if len(envelope) > MAX_INDEX:
        raise Refused(member, f"expected at most {MAX_INDEX} bytes")
    data = parsed(member, envelope)
    try:
        payload, kind, signatures = (
            base64.b64decode(data["payload"], validate=True),
            data["payloadType"],
            data["signatures"],
        )
        whole = {"payload": base64.b64encode(payload).decode(), "payloadType": kind, "signatures": signatures}
        if canonical(whole) != envelope or any(set(one) != {"keyid", "sig"} for one in signatures):
            raise Refused(member, "is not a DSSE envelope as Errata writes it")
    except (KeyError, TypeError, ValueError):
        raise Refused(member, "is not a DSSE envelope as Errata writes it") from None
    if kind != payload_type:
        raise Refused(member, f"expected the type {payload_type}, found {_shown(str(kind))}")
    text = payload_type.encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(text), text, len(payload), payload)
    for one in signatures:
        if one["keyid"] in keys:
            try:
                keys[one["keyid"]].verify(base64.b64decode(one["sig"], validate=True), signed)
            except (InvalidSignature, ValueError, TypeError):
                break
            return payload, one["keyid"]
    by = ", ".join(_shown(str(one["keyid"])) for one in signatures) or "nobody"
    raise Refused(member, f"expected a signature by {' or '.join(keys) or 'a key that was given'}; found one by {by}")


def canonical(value: Any) -> bytes:
    """Canonical JSON of text, whole numbers and null under ASCII keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def _public(pem: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise Refused("", "expected an Ed25519 public key as PEM")
    return key


def key_id(pem: bytes) -> str:
    """The SHA-256 of a public key's DER, as ``openssl pkey -pubin -outform DER | sha256sum`` shows it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return sha256(_public(pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def own_digest() -> str:
    """The SHA-256 of this file."""
    with open(os.path.abspath(__file__), "rb") as stream:  # noqa: PTH100, PTH123 (older Pythons read this file too)
        return sha256(stream.read())


# ------------------------------------------------------------------------------------------------ distribution rules

Numbers = Mapping[tuple[str, str, str], Any]


def judge_spread(rule: Mapping[str, Any], partition: str, manifest: Mapping[str, Any], numbers: Numbers) -> str:
    """The level of a distribution rule in one partition, from nothing but stored numbers."""
    rows = numbers.get(("candidate", partition, "rowCount"))
    if rows == "0":
        return "ok"
    places = [("prior", partition)]
    if rule["against"] == "control":
        controls = (manifest.get("control_partitions") or {}).get(partition, ())
        reach = {"hour": 7 * 24, "day": 7, "month": 12}[manifest["target"]["grain"]] * rule["reach"]
        here = _place_in_time(partition)
        places = [("control", name) for name in controls if abs(_place_in_time(name) - here) <= reach]
    elif numbers.get(("prior", partition, "rowCount"), "0") == "0":
        return "ok"
    if rows is None or any((*place, "rowCount") not in numbers for place in places):
        return "block"
    held = [place for place in places if numbers[(*place, "rowCount")] not in (None, "0")]
    if rule["against"] == "control" and len(held) < rule["least"]:
        return "warn"
    names = [f"distribution.{rule['name']} {one}" for one in rule["quantiles"]] or [f"distribution.{rule['name']}"]
    needed = [(*place, name) for place in [("candidate", partition), *held] for name in names]
    if any(key not in numbers for key in needed):
        return "block"
    judge = _judge_shares if rule["shares"] else _judge_quantile
    return max((judge(rule, name, partition, held, numbers) for name in names), key=("ok", "warn", "block").index)


def _judge_quantile(
    rule: Mapping[str, Any], name: str, partition: str, held: Sequence[tuple[str, str]], numbers: Numbers
) -> str:
    new, old = numbers["candidate", partition, name], [numbers[(*place, name)] for place in held]
    after, known = _to_number(new), [number for number in map(_to_number, old) if number is not None]
    before = _median(known) if known and len(known) == len(old) else None
    if before is None or after is None:
        is_same = rule["against"] == "prior" and new == old[0] and (new is None or _to_number(new) is not None)
        return "ok" if is_same else "block" if before is not None and rule["block"] is not None else "warn"
    return _judge_movement(rule, abs(after - before), abs(before))


def _judge_shares(
    rule: Mapping[str, Any], name: str, partition: str, held: Sequence[tuple[str, str]], numbers: Numbers
) -> str:
    texts = [numbers["candidate", partition, name], *(numbers[(*place, name)] for place in held)]
    if None in texts:
        return "warn"
    now, *before = [_to_shares(json.loads(text)) for text in texts]
    values = {value for one in (now, *before) for value in one}
    usual = {value: _median([one.get(value, Fraction(0)) for one in before]) for value in values}
    moved = max((abs(now.get(value, Fraction(0)) - usual[value]) for value in values), default=Fraction(0))
    return _judge_movement(rule, moved * 100, Fraction(100))


def _judge_movement(rule: Mapping[str, Any], moved: Fraction, base: Fraction) -> str:
    """A limit is an amount, or a percentage of the base; of nothing there is no percentage."""
    level = "ok"
    for name in ("warn", "block"):
        text = rule[name]
        if text is not None and text.endswith("%") and moved and not base:
            level = max(level, "warn", key=("ok", "warn", "block").index)
        elif text is not None and moved > Fraction(text.rstrip("%")) * (base / 100 if text.endswith("%") else 1):
            level = name
    return level


def _to_shares(listed: Sequence[Sequence[Any]]) -> dict[Any, Fraction]:
    total = sum(rows for _, rows in listed)
    return {value: Fraction(rows, total) for value, rows in listed}


def _to_number(text: Any) -> Fraction | None:
    try:
        return None if text is None else Fraction(text)
    except ValueError:
        return None


def _median(numbers: Sequence[Fraction]) -> Fraction:
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _place_in_time(partition: str) -> int:
    """Hours, days or months since some moment, by how precise the text is."""
    numbers = [int(one) for one in re.findall(r"\d+", partition)]
    if len(numbers) == 2:
        return numbers[0] * 12 + numbers[1]
    days = date(*numbers[:3]).toordinal()
    return days * 24 + numbers[3] if len(numbers) > 3 else days


# --------------------------------------------------------------------------------------------------- what it all says


class _Case:
    """One run: its records and its audit entries, held against each other."""

    def __init__(
        self, members: Mapping[str, bytes], keys: Mapping[str, Any], heads: Sequence[bytes], report: Report
    ) -> None:
        self.members, self.keys, self.heads, self.report = members, keys, heads, report
        self.records = {name: parsed(name, members[name]) for name in MUST if name.endswith(".json") and name != HEAD}
        self.manifest, self.run = self.records[MANIFEST], self.records[RUN]
        self.digest = sha256(members[MANIFEST])
        people = self.records[PEOPLE]
        self.told: dict[str, str] = {**people["names"], **people["texts"]}
        # modes that publish beside the target write rows anew, so the commit has other files than the candidate
        self.is_in_place = (self.manifest.get("publish") or {}).get("mode", IN_PLACE[0]) in IN_PLACE
        self.campaign: dict[str, Any] = parsed(CAMPAIGN, members[CAMPAIGN]) if CAMPAIGN in members else {}
        self.entries: dict[int, dict[str, Any]] = {}
        self.standing: dict[int, dict[str, Any]] = {}  # decisions on the standing approval that covers the run
        self.baselines: dict[int, dict[str, Any]] = {}  # what people accepted in copies that the run delivers to
        self.hashes: dict[int, str] = {}

    def judge(self) -> None:
        """Every rule; one that meets something it does not understand says so, and the others go on."""
        rules = (
            (ENTRIES, self.chain), (HEAD, self.kept_heads), (MANIFEST, self.plan), (CAMPAIGN, self.member),
            (RUN, self.moves),
            (DECISIONS, self.decisions), (WORK, self.work), (GATE, self.gate), (PUBLICATIONS, self.publications),
            (PUBLICATIONS, self.owed), (PUBLICATIONS, self.receipts), (RUN, self.partitions),
        )  # fmt: skip
        for member, rule in rules:
            try:
                rule()
            except Refused as refused:
                self.report.problems.append(refused.found)
            except _STRANGE as problem:
                self.wrong(member, f"is not what this verifier understands ({_strange(problem)})")
        self.summary()

    def who(self, stored: Any) -> str:
        """The name behind a pseudonym, or what a sealed text says; anything else as it is."""
        return self.told.get(stored, str(stored)) if isinstance(stored, str) else str(stored)

    def same_person(self, one: Any, other: Any) -> bool:
        """Whatever the letter case, and also where one record is older than pseudonyms."""
        return self.who(one).casefold().strip() == self.who(other).casefold().strip()

    def wrong(self, member: str, problem: str) -> None:
        self.report.problems.append(Problem(member, problem))

    def need(self, holds: bool, member: str, problem: str) -> bool:
        if not holds:
            self.wrong(member, problem)
        return holds

    def of(self, *actions: str) -> list[dict[str, Any]]:
        """Entries of this run with one of these actions, oldest first."""
        return [self.entries[seq] for seq in sorted(self.entries) if self.entries[seq]["action"] in actions]

    def entry(self, member: str, seq: Any, what: str, **fields: Any) -> dict[str, Any] | None:
        """The audit entry that a record names; its body must say the same."""
        found = self.entries.get(seq)
        if found is None:
            self.wrong(member, f"{what} names audit entry {seq}, which is not this run's")
            return None
        for name, value in fields.items():
            said = found["body"].get(name)
            self.need(said == value, member, f"{what} has {name} {value}, but audit entry {seq} says {said}")
        return found

    # ------------------------------------------------------------------------------------------------------ the audit

    def chain(self) -> None:
        """Each entry hashed again from the first of this run to the signed head; others show only their links."""
        text = self.members[ENTRIES].decode("utf-8")
        first, *rest = text.split("\n")[:-1]
        start = parsed(ENTRIES, first.encode())
        seq, previous, attested, links = start["first"], _hex(start["after"]), 0, 0
        own, links_began = {sha256(one.encode()) for one in self.own_ids()}, False
        for line in rest:
            item = parsed(ENTRIES, line.encode())
            if item["seq"] != seq:
                raise Refused(ENTRIES, f"entry {seq} is missing; found {item['seq']}")
            shape = set(item) - {"seq"}
            if links_began and shape <= {"whole", "hash"}:
                raise Refused(ENTRIES, f"entry {seq} claims to be of an older release than the one before it")
            links_began = links_began or "content" in shape or "content_sha256" in shape
            if shape == {"content"}:
                previous = _link(item["content"].encode(), self.own_entry(seq, item["content"]), previous, seq)
            elif shape == {"run", "content_sha256"}:
                self.need(item["run"] not in own, ENTRIES, f"entry {seq} is of this run, but what it says is left out")
                previous, links = _linked(_hex(item["content_sha256"]), item["run"], previous, seq), links + 1
            elif shape == {"whole"}:
                entry = self.own_entry(seq, item["whole"])
                if (entry["seq"], entry["previous"]) != (seq, previous):
                    raise Refused(ENTRIES, f"entry {seq} does not follow the one before")
                previous = sha256(item["whole"].encode())
            elif shape == {"hash"}:
                previous, attested = _hex(item["hash"]), attested + 1
            else:
                raise Refused(ENTRIES, f"entry {seq} is not what this verifier understands")
            self.hashes[seq] = previous
            seq += 1
        head = self.head_in(HEAD, self.members[HEAD])
        self.report.head = {"seq": head["seq"], "hash": head["hash"]}
        said = f"the entries end at {seq - 1} with {previous}, the signed head is {head['seq']} with {head['hash']}"
        self.need((head["seq"], head["hash"]) == (seq - 1, previous), ENTRIES, said)
        self.need(head["ledger"] == self.manifest["ledger_id"], HEAD, "is a head of another ledger")
        if attested:
            self.report.warnings.append(
                f"{attested} audit entries of other runs were written by an older release; their links are vouched for "
                "by the signature and cannot be hashed again without what they say"
            )
        told = f"{start['first']} … {seq - 1}: {len(self.entries)} of this run, {links + attested} of others as links"
        self.report.facts.append(("audit", told))

    def own_ids(self) -> list[str]:
        """The run, and the campaign that it is a member of; entries of both are whole."""
        return [self.run["run_id"], *([self.campaign["campaign_id"]] if self.campaign else [])]

    def own_entry(self, seq: int, text: str) -> dict[str, Any]:
        entry: dict[str, Any] = parsed(ENTRIES, text.encode())
        over = [row["digest"] for row in self.records[DECISIONS].get("standing", ())]
        if entry["run_id"] is None and entry["action"] in STANDING and entry["body"].get("digest") in over:
            self.standing[seq] = entry
        elif entry["run_id"] is None and entry["action"] == BASELINE and self.copy_items(entry["body"].get("copy")):
            self.baselines[seq] = entry
        elif entry["run_id"] not in self.own_ids():
            self.wrong(ENTRIES, f"entry {seq} is of another run")
        else:
            self.entries[seq] = {**entry, "seq": seq}
        return entry

    def head_in(self, member: str, envelope: bytes) -> dict[str, Any]:
        data = parsed(member, opened(member, envelope, HEAD_TYPE, self.keys)[0])
        if data["format"] != HEAD_FORMAT:
            raise Refused(member, f"expected {HEAD_FORMAT}")
        head: dict[str, Any] = data["head"]
        return head

    def kept_heads(self) -> None:
        """Heads that were kept elsewhere say the same as this chain wherever they meet it."""
        for envelope in self.heads:
            # a head that was printed into a file ends with the newline of the terminal
            head = self.head_in(KEPT_HEAD, envelope.rstrip(b"\r\n"))
            where = f"the head that was kept elsewhere, {head['seq']} with {head['hash']}"
            if head["ledger"] != self.manifest["ledger_id"]:
                self.wrong(KEPT_HEAD, f"{where}, is of another ledger")
            elif head["seq"] not in self.hashes:
                self.report.warnings.append(f"{where}, lies outside of these entries and proves nothing about them")
            else:
                said = f"{where}, is not entry {head['seq']} here: {self.hashes[head['seq']]}"
                if self.need(self.hashes[head["seq"]] == head["hash"], ENTRIES, said):
                    self.report.facts.append(("kept head", f"{head['seq']} agrees"))

    def moves(self) -> None:
        """From planned to where the run stands, each step allowed and following the one before."""
        state: str | None = None
        checks = self.manifest.get("kind") in CHECKING
        for entry in self.of(*{one["action"] for one in self.entries.values()}):
            move = entry["body"].get("move")
            if not move:
                continue
            legal = move["to"] == "planned" if state is None else move["to"] in MOVES[state]
            said = f"audit entry {entry['seq']} moves the run from {move['from']} to {move['to']}"
            self.need(move["from"] == state, ENTRIES, f"{said}, but it was {state}")
            self.need(legal, ENTRIES, f"{said}, which is not allowed")
            if (state, move["to"]) == ("planned", "running") or move["to"] in _ANSWERED:
                self.need(checks, ENTRIES, f"{said}, which only a run that changes nothing may do")
            elif move["to"] in (*_JUDGED, "publishing"):
                self.need(not checks, ENTRIES, f"{said}, but a run of this kind changes nothing")
            state = move["to"]
        self.need(state == self.run["state"], RUN, f"says {self.run['state']}, but the audit ends with {state}")
        told = self.report.run
        for name in ("run_id", "product", "state", "manifest_digest"):
            self.need(
                told.get(name) == self.run[name], RUN, f"{name} is {self.run[name]}, the index says {told.get(name)}"
            )

    # ------------------------------------------------------------------------------------------------------- the plan

    def plan(self) -> None:
        """The manifest is the one that was planned, and the long lists it names are there."""
        self.need(self.run["manifest_digest"] == self.digest, MANIFEST, f"has SHA-256 {self.digest}, the run another")
        nothing: list[dict[str, Any]] = [{"body": {}}]
        (planned,) = self.of("run.planned") or nothing
        said = planned["body"].get("manifest_digest")
        self.need(said == self.digest, MANIFEST, f"has SHA-256 {self.digest}, but {said} was planned")
        names = [self.manifest["target"]["expected_part"], *(pin.get("files_part") for pin in self.manifest["inputs"])]
        for name in filter(None, names):
            self.part(MANIFEST, name)
        for name in ("product", "reason", "requested_by", "single_user"):
            self.need(self.manifest[name] == self.run[name], RUN, f"has another {name} than the manifest")
        self.need(
            set(self.manifest["partitions"]) == set(self.run["partitions"]), RUN, "has another scope than the manifest"
        )
        told = [list(row) for row in planned["body"].get("verdicts", ())]
        shown = [[one["rule"], one["level"], one["message"], one["override"]] for one in self.records[PLAN]["verdicts"]]
        self.need(told == shown, PLAN, "has other verdicts than the audit entry of the plan")

    def part(self, member: str, digest: str) -> bytes:
        """The bytes that have this digest."""
        name = f"parts/{_hex(digest)}.json"
        if name not in self.members:
            raise Refused(member, f"names part {digest}, which is not in the bundle")
        if sha256(self.members[name]) != digest:
            raise Refused(name, "does not have the digest it is named by")
        return self.members[name]

    def member(self) -> None:
        """The plan of a member follows from the campaign that was approved, and from nothing that nobody approved."""
        over = self.manifest.get("campaign")
        if over is None:
            self.need(not self.campaign, CAMPAIGN, "is there, but the manifest names no campaign")
            return
        if not self.need(bool(self.campaign), MANIFEST, f"is of campaign {over}, which is not in the bundle"):
            return
        record = self.campaign
        self.need(record["campaign_digest"] == over, CAMPAIGN, f"has another campaign than the manifest, {over}")
        self.need(record["digest"] == self.digest, CAMPAIGN, f"approves {record['digest']}, not this manifest")
        campaign, found = (parsed(CAMPAIGN, self.part(CAMPAIGN, name)) for name in (over, record["derived"]))
        derived = derive_manifest(campaign, over, record["product"], found)
        self.need(derived == self.manifest, MANIFEST, "does not follow from the campaign that was approved")
        publications = [one for named in found["publications"].values() for one in named["partitions"].values()]
        intents = {one["detail"]: parsed(CAMPAIGN, self.part(CAMPAIGN, one["detail"])) for one in publications}
        for problem in find_drift(campaign, record["product"], found, intents):
            self.wrong(CAMPAIGN, problem)
        self.entry(
            CAMPAIGN, record["audit_seq"], "the approval of the member", campaign_digest=over,
            member_digest=self.digest, derived=record["derived"], campaign=record["campaign_id"],
        )  # fmt: skip
        planned = self.of("campaign.planned")
        same = bool(planned) and planned[0]["body"].get("manifest_digest") == over
        self.need(same, CAMPAIGN, "is not the campaign that was planned")
        for name in ("requested_by", "single_user", "reason", "ledger_id"):
            self.need(campaign[name] == self.manifest[name], CAMPAIGN, f"has another {name} than the manifest")
        self.report.facts.append(("campaign", f"{record['campaign_id']}, {len(campaign['members'])} members"))

    # -------------------------------------------------------------------------------------------------- who decided it

    def decisions(self) -> None:
        """Approvals over the manifest's digest by others than the requester, and as many as the plan asks for."""
        records, requester = self.records[DECISIONS], self.manifest["requested_by"]
        single, counted, broken = bool(self.manifest["single_user"]), set(), []
        for row in records["approvals"]:
            what = f"the decision of {self.who(row['person'])}"
            self.entry(DECISIONS, row["audit_seq"], what, digest=row["digest"], person=row["person"])
            over = self.manifest.get("campaign") or self.digest
            self.need(row["digest"] == over, DECISIONS, f"{what} is over {row['digest']}, not over this plan")
            if row["decision"] != "approved":
                continue
            if row.get("break_glass"):
                broken.append(row)
            elif single or not self.same_person(row["person"], requester):
                counted.add(self.who(row["person"]).casefold())
            else:
                self.wrong(DECISIONS, f"{self.who(row['person'])} asked for this run and approved it")
        self.complete(
            records["approvals"], DECISIONS,
            "run.approved", "run.declined", "approval.recorded", "campaign.approved", "campaign.declined",
        )  # fmt: skip
        quorum = 1 if single else (self.manifest.get("approval") or {}).get("quorum", 1)
        ran = any((entry["body"].get("move") or {}).get("to") == "approved" for entry in self.entries.values())
        if ran and len(counted) < quorum and not broken and not self.covered(quorum, single=single):
            self.wrong(DECISIONS, f"the run was approved with {len(counted)} of {quorum} approvals")
        self.complete(records["releases"], DECISIONS, "run.released")
        for row in records["releases"]:
            what = f"the release by {self.who(row['person'])}"
            self.entry(DECISIONS, row["audit_seq"], what, digest=row["digest"], person=row["person"], kind=row["kind"])
            same = sha256(row["subject"].encode()) == row["digest"]
            self.need(same, DECISIONS, f"{what} is over {row['digest']}, which is not the digest of what was released")
            alone = row["kind"] != "automatic" and self.same_person(row["person"], requester)
            self.need(single or not alone or bool(row["break_glass"]), DECISIONS, f"{what}: they asked for this run")
            if row["break_glass"]:
                self.report.warnings.append(
                    f"BREAK-GLASS: {self.who(row['person'])} released alone: {self.who(row['break_glass'])}"
                )
        told = [(row["check"], row["person"], row["findings"]) for row in records["warnings"]]
        said = [
            tuple(one["body"].get(name) for name in ("check", "person", "findings"))
            for one in self.of("warning.accepted")
        ]
        self.need(told == said, DECISIONS, "has other accepted warnings than the audit")
        for check, person, _ in told:
            own = f"{self.who(person)} accepted a warning of a run they asked for: {check}"
            self.need(single or not self.same_person(person, requester), DECISIONS, own)
        if single:
            self.report.warnings.append(
                "SINGLE-USER MODE: one person may ask, approve and publish; nobody else had to agree"
            )
        for row in broken:
            self.report.warnings.append(
                f"BREAK-GLASS: {self.who(row['person'])} approved alone: {self.who(row['break_glass'])}"
            )

    def covered(self, quorum: int, *, single: bool) -> bool:
        """Whether a standing approval covers the run: decided before by enough others, and the run is inside it."""
        uses, requester = self.of("standing.used"), self.manifest["requested_by"]
        if not uses:
            return False
        digest, at = uses[0]["body"]["digest"], uses[0]["seq"]
        what = f"the standing approval {digest[:12]}"
        row = next((one for one in self.records[DECISIONS].get("standing", ()) if one["digest"] == digest), None)
        if row is None or sha256(row["subject"].encode()) != digest:
            raise Refused(DECISIONS, f"lacks the content of {what}, under which the run was approved")
        scope = parsed(DECISIONS, row["subject"].encode())
        self.decided_before(row, what)
        ended = max((one["audit_seq"] for one in row["decisions"] if one["decision"] != "approved"), default=0)
        people = {
            self.who(one["person"]).casefold()
            for one in row["decisions"]
            if one["decision"] == "approved" and ended < one["audit_seq"] < at
            if single or not self.same_person(one["person"], requester)
        }
        self.need(len(people) >= quorum, DECISIONS, f"{what} has {len(people)} of {quorum} approvals before the run")
        limits = {
            rule["name"].removeprefix(STANDING_RULE): rule["warn"]
            for rule in self.manifest.get("compare", ())
            if rule["name"].startswith(STANDING_RULE)
        }
        inside = (
            scope["product"] == self.manifest["product"]
            and len(self.manifest["partitions"]) <= scope["partitions_per_run"]
            and limits == scope["changes"]
            and not self.manifest.get("overrides")
            and self.manifest["kind"] == "restate"
        )
        self.need(inside, DECISIONS, f"the run is outside {what}")
        self.report.warnings.append(
            f"STANDING APPROVAL: {', '.join(sorted(people))} approved runs like this one in advance ({digest[:12]}); "
            "nobody had to look at this one"
        )
        return True

    def decided_before(self, row: Mapping[str, Any], what: str) -> None:
        """Every decision on a standing approval is an audit entry that says the same, and none is left out."""
        for one in row["decisions"]:
            entry = self.standing.get(one["audit_seq"], {"action": "", "body": {}})
            told = (entry["action"], entry["body"].get("person"), entry["body"].get("digest"))
            same = told == (f"standing.{one['decision']}", one["person"], row["digest"])
            by = f"{what} is {one['decision']} by {self.who(one['person'])}"
            self.need(same, DECISIONS, f"{by}, but audit entry {one['audit_seq']} does not say so")
        for seq in sorted(self.standing.keys() - {one["audit_seq"] for one in row["decisions"]}):
            self.wrong(DECISIONS, f"lacks the decision of audit entry {seq} on {what}")

    def complete(self, rows: Sequence[Mapping[str, Any]], member: str, *actions: str) -> None:
        """Whoever decided something in the audit has a record of it."""
        known = {(row["person"], row["digest"]) for row in rows}
        for entry in self.of(*actions):
            body = entry["body"]
            is_there = (body.get("person"), body.get("digest")) in known or "digest" not in body
            self.need(is_there, member, f"lacks the decision of audit entry {entry['seq']}")

    # -------------------------------------------------------------------------------------------------- what was done

    def work(self) -> None:
        """At most one adopted attempt a chunk, fences in order, and what the audit says of each adoption."""
        attempts = self.records[WORK]["attempts"]
        adopted = {(one["body"]["chunk"], one["body"]["fence"]): one["body"] for one in self.of("chunk.adopted")}
        for chunk in self.records[WORK]["chunks"]:
            own = [one for one in attempts if one["chunk_id"] == chunk["chunk_id"]]
            fences = [one["fence"] for one in own]
            self.need(fences == list(range(1, len(own) + 1)), WORK, f"{chunk['chunk_id']} has fences {fences}")
            taken = [one for one in own if one["state"] == "adopted"]
            is_done = chunk["state"] == "done"
            self.need(
                len(taken) == int(is_done), WORK, f"{chunk['chunk_id']} is {chunk['state']} with {len(taken)} adopted"
            )
            for one in taken:
                said = adopted.pop((chunk["chunk_id"], one["fence"]), {})
                same = all(said.get(name) == one[name] for name in ("snapshot_id", "rows", "files", "bytes"))
                here = f"the adopted attempt {one['fence']} of {chunk['chunk_id']}"
                same_list = said.get("erasure_snapshot_id") == one.get("erasure_snapshot_id")
                self.need(same and same_list, WORK, f"{here} is not what the audit says")
                self.need(one["snapshot_id"] == chunk["snapshot_id"], WORK, f"{here} is not the chunk's output")
        self.need(not adopted, WORK, f"lacks adopted attempts of {', '.join(sorted(name for name, _ in adopted))}")

    def gate(self) -> None:
        """Candidates, their numbers and every verdict are what the audit says of them."""
        gate = self.records[GATE]
        intended = {one["body"]["n"]: one["body"] for one in self.of("candidate.intended")}
        made = {one["body"]["n"]: one["body"] for one in self.of("candidate.made")}
        measured = {one["body"]["n"]: one["body"] for one in self.of("candidate.measured")}
        self.need(
            {one["n"] for one in gate["candidates"]} == set(intended),
            GATE,
            "lacks a candidate of the audit, or has one more",
        )
        for one in gate["candidates"]:
            n, what = one["n"], f"candidate {one['n']}"
            self.need(
                intended.get(n, {}).get("digest") == one["digest"], GATE, f"{what} has another digest in the audit"
            )
            if one["snapshot_id"] is not None:
                said = made.get(n, {}).get("snapshot_id")
                self.need(
                    said == one["snapshot_id"], GATE, f"{what} is snapshot {one['snapshot_id']}, the audit says {said}"
                )
            numbers = f"measurements/c{n}.json"
            if n in measured:
                self.need(numbers in self.members, GATE, f"lacks the measurements of {what}")
                same = sha256(self.members.get(numbers, b"")) == measured[n]["digest"]
                self.need(same, numbers, f"are not the numbers that were audited for {what}")
            if one["files"]:
                self.part(GATE, one["digest"])
            else:
                self.report.warnings.append(
                    f"{what} was made by an older release; the list of its files is not in the bundle"
                )
        self.verdicts(gate["verdicts"])
        self.facts(gate["facts"])
        changed = self.records[DIFF]
        if changed["summary"] is not None:
            said = [one["body"]["summary"] for one in self.of(f"fact.diff.{changed['candidate']}")]
            self.need(said == [changed["summary"]], DIFF, "has another summary of the diff than the audit")
            self.part(DIFF, changed["summary"])
        elif changed["candidate"] is not None:
            self.report.warnings.append(f"no summary of changed rows: {changed['missing']}")

    def facts(self, found: Mapping[str, Any]) -> None:
        """What was found out once: canaries, changed thresholds, what a publication owed and paid."""
        said = {one["action"][5:]: one["body"] for one in self.entries.values() if one["action"].startswith("fact.")}
        for name in sorted({*said, *found}):
            # secrets are taken out of the audit, which shows by these signs
            fits = said.get(name) == found.get(name) or "${" in str(said.get(name)) or "…" in str(said.get(name))
            self.need(name in said and name in found and fits, GATE, f"fact {name} is not what the audit says")
            if name.startswith("rebase."):
                for part in ("expected_part", "pins_part"):
                    self.part(GATE, str(found.get(name, {}).get(part)))

    def verdicts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """A verdict passes when nothing blocks and a person answers for every warning."""
        accepted = {(row["check"], row["person"]) for row in self.records[DECISIONS]["warnings"]}
        for row in rows:
            what = f"the verdict on candidate {row['candidate_n']} of {row['at']}"
            same = {"n": row["candidate_n"], "passed": row["passed"], "thresholds_digest": row["thresholds_digest"]}
            self.entry(GATE, row["audit_seq"], what, **same)
            is_open = [
                one
                for one in row["checks"]
                if one["level"] == "block" or (one["level"] == "warn" and not one.get("accepted_by"))
            ]
            self.need(
                row["passed"] == (not is_open),
                GATE,
                f"{what} says passed={row['passed']} with {len(is_open)} open findings",
            )
            for one in row["checks"]:
                by = one.get("accepted_by")
                said = f"{what} counts {one['name']} as accepted by {by}, who did not accept it"
                self.need(not by or (one["name"], by) in accepted, GATE, said)
            self.distributions(row, what)
        known = {row["audit_seq"] for row in rows}
        judged = (*(f"run.{state}" for state in (*_JUDGED, *_ANSWERED)), "verdict.recorded")
        for entry in self.of(*judged):
            self.need(
                entry["seq"] in known or "n" not in entry["body"],
                GATE,
                f"lacks the verdict of audit entry {entry['seq']}",
            )

    def distributions(self, row: Mapping[str, Any], what: str) -> None:
        """Distribution rules, judged again here: their levels follow from the numbers and the limits in force."""
        changes = [one for one in self.of_facts("thresholds.") if one["seq"] < row["audit_seq"]]
        in_force = self.manifest | (changes[-1]["body"]["rules"] if changes else {})
        rules = in_force.get("distribution", ())
        found = {(one["name"], one["partition"]): one["level"] for one in row["checks"]}
        judged = [partition for name, partition in found if name == "completeness"]
        member = f"measurements/c{row['candidate_n']}.json"
        listed = parsed(member, self.members[member]) if rules else ()
        numbers = {(scope, partition, name): value for scope, partition, name, value, _ in listed}
        for rule in rules:
            for partition in judged:
                told, level = (
                    found.get((rule["name"], partition)),
                    judge_spread(rule, partition, self.manifest, numbers),
                )
                said = f"{what} has {rule['name']} of {partition} as {told}, its numbers make it {level}"
                self.need(told == level, GATE, said)

    def of_facts(self, prefix: str) -> list[dict[str, Any]]:
        """Entries of facts whose names begin so, oldest first."""
        return [self.entries[seq] for seq in sorted(self.entries)
                if self.entries[seq]["action"].startswith(f"fact.{prefix}")]  # fmt: skip

    def publications(self) -> None:
        """What was published is the candidate that passed, file by file; what was taken back is what was there."""
        rows = self.records[PUBLICATIONS]["publications"]
        if rows and self.manifest.get("kind") in CHECKING:
            self.wrong(PUBLICATIONS, f"a run of kind {self.manifest['kind']} changes nothing, but was published")
        known = {row["pub_id"] for row in rows}
        for entry in self.of("publish.intended", "rollback.intended"):
            said = f"lacks {entry['body']['publication']} of audit entry {entry['seq']}"
            self.need(entry["body"]["publication"] in known, PUBLICATIONS, said)
        removed: dict[str, dict[str, Any]] = {}
        for row in rows:
            detail = self.intent(row)
            if row["state"] != "committed":
                continue
            if row["kind"] == "publish":
                self.released(row, detail)
                removed.update(detail.get("remove") or {})
                continue
            if not self.is_in_place:
                continue
            anew = {name for names in (detail.get("rewrite") or {}).values() for name in names}
            for name in row["partitions"]:
                back, before = (detail.get("add") or {}).get(name), removed.get(name)
                same = name in anew or before is None or _paths(back) == _paths(before)
                self.need(
                    same, PUBLICATIONS, f"{row['pub_id']} brought other files back to {name} than were taken out of it"
                )

    def intent(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The last thing that was about to be committed; each try and the outcome are in the audit."""
        pub, kind = row["pub_id"], row["kind"]
        tries = [one for one in self.of(f"{kind}.intended", f"{kind}.updated") if one["body"]["publication"] == pub]
        ends = [one for one in self.of(f"{kind}.committed", f"{kind}.abandoned") if one["body"]["publication"] == pub]
        told = [one["body"]["detail"] for one in tries]
        self.need(told == row["details"] and bool(told), PUBLICATIONS, f"{pub} has other intents than the audit")
        if tries:
            body = tries[0]["body"]
            same = (body["partitions"], body["person"]) == (row["partitions"], row["person"])
            self.need(
                same and (body.get("release") or {}) == row["release"], PUBLICATIONS, f"{pub} is not what was intended"
            )
        end = {"intended": [], "committed": [f"{kind}.committed"], "abandoned": [f"{kind}.abandoned"]}[row["state"]]
        self.need(
            [one["action"] for one in ends] == end, PUBLICATIONS, f"{pub} is {row['state']}, the audit says otherwise"
        )
        if row["state"] == "committed" and ends:
            same = ends[0]["body"]["snapshot_id"] == row["result_snapshot_id"]
            self.need(same, PUBLICATIONS, f"{pub} has snapshot {row['result_snapshot_id']}, the audit another")
        contents = [parsed(PUBLICATIONS, self.part(PUBLICATIONS, digest)) for digest in row["details"]]
        return contents[-1] if contents else {}

    def released(self, row: Mapping[str, Any], detail: Mapping[str, Any]) -> None:
        """A publication stands on approvals, on a verdict that passed, and on that candidate's files."""
        pub, release, gate = row["pub_id"], row["release"], self.records[GATE]
        at = min(one["seq"] for one in self.of("publish.intended") if one["body"]["publication"] == pub)
        candidate = {one["n"]: one for one in gate["candidates"]}.get(release.get("candidate"), {})
        same = (candidate.get("digest"), candidate.get("snapshot_id")) == (
            release.get("digest"),
            release.get("snapshot_id"),
        )
        self.need(bool(candidate) and same, PUBLICATIONS, f"{pub} released another candidate than was judged")
        # each wave has a candidate of its own; a newer one of the same partitions would have replaced it
        rivals = {one["n"] for one in gate["candidates"] if set(one["rows"]) & set(row["partitions"])}
        before = [one for one in gate["verdicts"] if one["audit_seq"] < at and one["candidate_n"] in rivals]
        passed = bool(before) and before[-1]["passed"] and before[-1]["candidate_n"] == release.get("candidate")
        self.need(passed, PUBLICATIONS, f"{pub} was published without a verdict that passed this candidate")
        approvals = self.records[DECISIONS]["approvals"]
        approved = any(one["decision"] == "approved" and one["audit_seq"] < at for one in approvals)
        if not approved and any(one["seq"] < at for one in self.of("standing.used")):
            found = [check for check in (before[-1]["checks"] if before else ()) if check["level"] != "ok"]
            self.need(not found, PUBLICATIONS, f"{pub} went under a standing approval though the gate found something")
            approved = True
        self.need(approved, PUBLICATIONS, f"{pub} was published before anyone approved the plan")
        if before:
            self.warranted(row, candidate, before[-1], at)
        if candidate.get("files") and self.is_in_place:
            files = {(path, rows) for path, rows in parsed(GATE, self.part(GATE, candidate["digest"]))["files"]}
            added = {(path, rows) for listed in detail["add"].values() for kind, path, rows in listed if kind == "data"}
            strange = sorted(path for path, _ in added - files)
            self.need(
                not strange,
                PUBLICATIONS,
                f"{pub} added files that the candidate did not have: {', '.join(strange[:3])}",
            )
            if set(row["partitions"]) >= set(candidate["rows"]):
                self.need(
                    added == files,
                    PUBLICATIONS,
                    f"{pub} published the whole scope, but not every file of the candidate",
                )

    def warranted(
        self, row: Mapping[str, Any], candidate: Mapping[str, Any], verdict: Mapping[str, Any], at: int
    ) -> None:
        """Someone other than the requester let exactly this out: plan, candidate, verdict and accepted warnings."""
        pub, digest = row["pub_id"], row["release"].get("release_digest")
        if digest is None:
            other = not self.same_person(row["person"], self.manifest["requested_by"])
            self.need(other or self.manifest["single_user"], PUBLICATIONS, f"{pub} was published by who asked for it")
            return
        known = [
            one for one in self.records[DECISIONS]["releases"] if one["digest"] == digest and one["audit_seq"] < at
        ]
        if not self.need(bool(known), PUBLICATIONS, f"{pub} names release {digest}, which was not given before it"):
            return
        subject = parsed(DECISIONS, known[-1]["subject"].encode())
        findings = {
            "passed": verdict["passed"],
            "checks": verdict["checks"],
            "thresholds": verdict["thresholds_digest"],
        }
        wanted = {
            "manifest_digest": self.digest, "candidate": candidate["n"], "candidate_digest": candidate["digest"],
            "verdict": verdict["audit_seq"], "verdict_digest": sha256(canonical(findings)),
        }  # fmt: skip
        if known[-1]["kind"] == "automatic":
            is_clean = all(check["level"] == "ok" for check in verdict["checks"])
            alone = (bool(self.of("standing.used")) and is_clean) or self.goes_alone(known[-1])
            self.need(alone, PUBLICATIONS, f"{pub} was released by rule, which its plan forbids")
        for name, expected in wanted.items():
            said = f"{pub} was released over {name} {subject.get(name)}, but published with {expected}"
            self.need(subject.get(name) == expected, PUBLICATIONS, said)

    def goes_alone(self, release: Mapping[str, Any]) -> bool:
        """Whether the plan lets a candidate out without a person, or on a person's release of the first wave."""
        rule = (self.manifest["publish"].get("waves") or {"release": "none"})["release"]
        if rule == "none":
            return not self.manifest["manual"]
        first = {name for chunk in self.manifest["chunks"] if chunk["wave"] <= 1 for name in chunk["partitions"]}

        def covers_first(row: Mapping[str, Any]) -> bool:
            return not first.isdisjoint(parsed(DECISIONS, row["subject"].encode())["partitions"])

        by_person = [
            one
            for one in self.records[DECISIONS]["releases"]
            if one["kind"] != "automatic" and one["audit_seq"] < release["audit_seq"] and covers_first(one)
        ]
        return rule == "first" and bool(by_person) and not covers_first(release)

    def owed(self) -> None:
        """What the run owed is what the audit says, and depends on its publication: owed if it landed, void if not."""
        rows = {row["item_id"]: row for row in self.records[PUBLICATIONS].get("owed", ())}
        said: dict[int, dict[str, Any]] = {}
        for entry in (self.entries[seq] for seq in sorted(self.entries)):
            if not entry["action"].startswith("outbox."):
                continue
            state = {"retried": "owed"}.get(entry["action"][7:], entry["action"][7:])
            for item in entry["body"]["items"]:
                result = {"result": entry["body"]["result"]} if "result" in entry["body"] else {}
                by = {"waived_by": entry["body"].get("person")}
                said.setdefault(item["id"], {}).update({**item, **result, **by, "state": state})
        outcomes = {row["pub_id"]: row["state"] for row in self.records[PUBLICATIONS]["publications"]}
        for item_id in sorted({*said, *rows}):
            row, told = rows.get(item_id, {}), said.get(item_id, {})
            names = ("effect", "event", "consumer", "partitions", "payload")
            content = {name: row.get(name) for name in names} | {"table_name": row.get("table")}
            fits = told.get("key") == row.get("key") and told.get("digest") == sha256(canonical(content))
            fits = fits and told.get("state") == row.get("state") and told.get("result", {}) == row.get("result")
            fits = fits and told.get("waived_by") == row.get("waived_by")
            self.need(fits, PUBLICATIONS, f"item {item_id} that was owed is not what the audit says")
            outcome = outcomes.get(row.get("pub_id"))
            allowed = {"intended": ("conditional",), "abandoned": ("void",)}.get(str(outcome))
            is_settled = row.get("state") in allowed if allowed else row.get("state") not in ("conditional", "void")
            self.need(is_settled, PUBLICATIONS, f"item {item_id} is {row.get('state')}, its publication {outcome}")

    def copy_items(self, name: Any) -> list[dict[str, Any]]:
        """What the run owed this copy of its table."""
        owed = self.records[PUBLICATIONS].get("owed", ())
        return [row for row in owed if row["effect"] == "copy" and row["consumer"] == name]

    def receipts(self) -> None:
        """What a copy got is what the run published or took back, and the numbers of every side agree."""
        rows = [row for row in self.records[PUBLICATIONS].get("owed", ()) if row["effect"] == "copy"]
        heights: dict[tuple[str, str], int] = {}  # how far each partition of each copy has come
        counts: dict[tuple[str, int], int] = {}  # rows of what was accepted, which are the same in every copy
        for row in sorted(rows, key=lambda one: one["audit_seq"]):
            what, result = f"the receipt of item {row['item_id']}", row["result"]
            if "absorbed_by" not in result and result:
                place = f"{result.get('warehouse')}:{result.get('table')}"
                self.need(place == row["consumer"], PUBLICATIONS, f"{what} is of {place}, not of {row['consumer']}")
            if row["state"] == "paid" and "absorbed_by" in result:
                self.absorbed(row, rows, what)
            elif row["state"] == "paid" and "contents" in result:
                entry = self.entry(PUBLICATIONS, row["audit_seq"], what, result=result)
                paid = entry is not None and entry["action"] == "outbox.paid"
                self.need(paid, PUBLICATIONS, f"{what} is not of a payment")
                self.receipt(row, what, heights, counts)
            elif row["state"] == "paid":
                self.need(bool(result.get("metadata")), PUBLICATIONS, f"{what} is missing")
            else:
                self.not_delivered(row, what)
        for seq in sorted(self.baselines):
            body = self.baselines[seq]["body"]
            held = parsed(ENTRIES, self.part(ENTRIES, body["contents"]))
            many = len(held) == body["partitions"] and set(body["differing"]) <= set(held)
            self.need(many, ENTRIES, f"what audit entry {seq} accepted in {body['copy']} is not what it says")
            who = self.who(self.baselines[seq]["actor"]["person"])
            told = f"{who}, {self.baselines[seq]['at']}: {_counted(held, 'partition')}: {self.who(body['reason'])}"
            self.report.facts.append((f"accepted {body['copy']}", told))

    def absorbed(self, row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], what: str) -> None:
        """An item that a newer one was paid for: of the same copy, with all its partitions."""
        newer = [one for one in rows if one["key"] == row["result"]["absorbed_by"]]
        for one in newer:  # none: it is of another run
            covers = (one["consumer"], one["state"]) == (row["consumer"], "paid") and one["seq"] > row["seq"]
            covers = covers and set(row["partitions"]) <= set(one["partitions"])
            self.need(covers, PUBLICATIONS, f"{what} names {one['key']}, which does not cover it")

    def not_delivered(self, row: Mapping[str, Any], what: str) -> None:
        """What stopped it is about its own partitions; a copy that somebody gave up is said loudly."""
        changed = row["result"].get("changed", ())
        self.need(set(changed) <= set(row["partitions"]), PUBLICATIONS, f"{what} names partitions of another item")
        if row["state"] == "waived":
            by = f"{self.who(row['waived_by'])} gave up {_counted(row['partitions'], 'partition')}"
            self.report.warnings.append(f"{row['consumer']} was not delivered: {by}: {self.who(row['waived_why'])}")

    def receipt(
        self, row: Mapping[str, Any], what: str, heights: dict[tuple[str, str], int], counts: dict[tuple[str, int], int]
    ) -> None:
        """One receipt: its partitions, its sums, and what each partition held on every side."""
        result, contents = row["result"], parsed(PUBLICATIONS, self.part(PUBLICATIONS, row["result"]["contents"]))
        published = {one["pub_id"]: one for one in self.records[PUBLICATIONS]["publications"]}
        if row["pub_id"] is None:
            self.planned_repair(row, what)
        else:
            cause = published.get(row["pub_id"], {})
            accepted = cause.get("state") == "committed" and set(row["partitions"]) <= set(cause["partitions"])
            self.need(accepted, PUBLICATIONS, f"{what} has partitions that {row['pub_id']} did not bring")
        self.need(set(contents) == set(row["partitions"]), PUBLICATIONS, f"{what} has other partitions than its item")
        swapped = {name: one for name, one in contents.items() if "staged" in one}
        written = sum(one["rows"] for one in swapped.values())
        sums = [
            ("partitions", result["partitions"], len(contents)),
            ("rows", result["rows"], sum(one["rows"] for one in contents.values())),
        ]
        if swapped or "rows_written" in result:
            sums += [
                ("rows_written", result["rows_written"], written), ("loaded rows", result["loaded"]["rows"], written),
                ("rows_removed", result["rows_removed"], sum(one["before"]["rows"] for one in swapped.values())),
                ("publication", result["publication"], row["pub_id"] or row["key"]),
                ("snapshots", result["snapshots"], sorted({one["snapshot_id"] for one in swapped.values()})),
                ("attempts", result["attempts"][-1:], [[result["attempt"], "done"]]),
            ]  # fmt: skip
            least = (result["seconds"], result["seconds_since_commit"], result["loaded"]["rows_as_is"])
            usual = min(least) >= 0 and result["loaded"]["rows_as_is"] <= written
            self.need(usual, PUBLICATIONS, f"{what} has numbers that cannot be")
        for name, told, found in sums:
            self.need(told == found, PUBLICATIONS, f"{what} says {name} {told}, its partitions make it {found}")
        tries = [attempt for attempt, _ in result["attempts"]]
        ended = all(state in ("done", "void") for _, state in result["attempts"])
        self.need(tries == sorted(set(tries)) and ended, PUBLICATIONS, f"{what} has attempts {result['attempts']}")
        for name, one in contents.items():
            here = f"{what}, {name}"
            self.measured(result, name, one, here)
            self.accepted_by(name, one, here, published)
            top, rows = heights.get((row["consumer"], name), 0), counts.setdefault((name, one["sequence"]), one["rows"])
            self.need(one["sequence"] >= top, PUBLICATIONS, f"{here} went back to an older acceptance")
            self.need(one["rows"] == rows, PUBLICATIONS, f"{here} has {one['rows']} rows, another receipt has {rows}")
            heights[row["consumer"], name] = one["sequence"]
        told = f"{_counted(contents, 'partition')}, {result['rows']:,} rows, item {row['item_id']}"
        self.report.facts.append((f"copy {row['consumer']}", told))

    def planned_repair(self, row: Mapping[str, Any], what: str) -> None:
        """A repair of a copy follows from the sealed plan, not from a publication."""
        sealed = [one for one in self.manifest.get("repairs", ()) if one["copy"] == row["consumer"]]
        planned = {name for one in sealed for name in one["partitions"]}
        self.need(set(row["partitions"]) == planned, PUBLICATIONS, f"{what} has other partitions than the plan repairs")
        removed, held = row["result"].get("rows_removed"), sum(one["copy_rows"] for one in sealed)
        self.need(removed in (None, held), PUBLICATIONS, f"{what} removed {removed} rows, the plan says {held}")

    def measured(self, result: Mapping[str, Any], name: str, one: Mapping[str, Any], here: str) -> None:
        """The lake, the staging table, the copy before its commit and the copy afterwards hold the same rows."""
        was_swapped, since = "staged" in one, name in result.get("written_since", ())
        needed = {"read_back", *(("staged", "before") if was_swapped else ("delivered_by",))}
        if was_swapped and not result.get("answer_lost"):
            needed.add("copy")
        self.need(needed <= set(one), PUBLICATIONS, f"{here} was not measured everywhere")
        for step in ("staged", "copy", "read_back"):
            same = step not in one or is_like(one, one[step], result.get("tolerance"))
            if step == "read_back" and since:
                self.need(not same, PUBLICATIONS, f"{here} is called written since, but holds what was delivered")
                self.report.warnings.append(f"{name} of {result['warehouse']}:{result['table']} was written by others")
            else:
                self.need(same, PUBLICATIONS, f"{here} has other rows in the lake than in {step}")

    def accepted_by(
        self, name: str, one: Mapping[str, Any], here: str, published: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """What was delivered is what a publication or rollback accepted, with as many rows as the gate counted."""
        row = published.get(one["publication"])
        if row is None:  # a later run had replaced it when the copy was delivered
            foreign = not str(one["publication"]).startswith(f"{self.run['run_id']}-")
            self.need(foreign, PUBLICATIONS, f"{here} is of {one['publication']}, which is not in the bundle")
            return
        brought = row["state"] == "committed" and name in row["partitions"]
        self.need(brought, PUBLICATIONS, f"{here} was not brought by {one['publication']}")
        same = row["result_snapshot_id"] == one["snapshot_id"]
        self.need(same, PUBLICATIONS, f"{here} is of snapshot {one['snapshot_id']}, which {row['pub_id']} did not make")
        numbers = f"measurements/c{row['release'].get('candidate')}.json"
        if row["kind"] != "publish" or numbers not in self.members:
            return
        if (self.manifest.get("publish") or {}).get("mode", IN_PLACE[0]) == IN_PLACE[0]:
            listed = parsed(numbers, self.members[numbers])
            counted = [value for scope, part, metric, value, _ in listed
                       if (scope, part, metric) == ("candidate", name, "rowCount")]  # fmt: skip
            same = all(value == str(one["rows"]) for value in counted)
            self.need(same, PUBLICATIONS, f"{here} has {one['rows']} rows, the gate counted {' '.join(counted)}")

    def partitions(self) -> None:
        """Where each partition stands follows from what was published and taken back."""
        stands = dict.fromkeys(self.run["partitions"], "unpublished")
        for row in self.records[PUBLICATIONS]["publications"]:
            if row["state"] == "committed":
                stands.update(
                    dict.fromkeys(row["partitions"], "accepted" if row["kind"] == "publish" else "rolled_back")
                )
        for name, found in self.run["partitions"].items():
            # a later run's publications are not in this bundle
            fits = found == stands.get(name) or (found == "superseded" and stands.get(name) == "accepted")
            self.need(fits, RUN, f"{name} is {found}, but its publications make it {stands.get(name)}")

    def summary(self) -> None:
        """What a reader wants to see confirmed."""
        run, told, facts = self.run, self.records[DECISIONS], self.report.facts
        facts.insert(0, ("run", f"{run.get('run_id')} of {run.get('product')}, {run.get('state')}"))
        facts.insert(1, ("reason", str(run.get("reason"))))
        facts.insert(2, ("asked", f"{self.who(run.get('requested_by'))}, {run.get('planned_at')}"))
        for row in told.get("approvals", ()):
            facts.append((str(row.get("decision")), f"{self.who(row.get('person'))}, {row.get('at')}"))
        for row in told.get("releases", ()):
            facts.append(("released", f"{self.who(row.get('person'))}, {row.get('at')}"))
        for row in self.records[GATE].get("verdicts", ())[-1:]:
            is_blocked = any(one.get("level") == "block" for one in row.get("checks", ()))
            word = "passed" if row.get("passed") else "rejected" if is_blocked else "needs acceptance"
            word = run["state"] if run.get("state") in _ANSWERED else word
            by = f"judged by {self.who(row.get('person'))}, {row.get('at')}"
            facts.append(("gate", f"{word}, {_counted(row.get('checks', ()), 'finding')}, {by}"))
        owed = [str(row.get("state")) for row in self.records[PUBLICATIONS].get("owed", ())]
        if owed:
            facts.append(("owed", ", ".join(f"{owed.count(state)} {state}" for state in dict.fromkeys(owed))))
        for row in self.records[PUBLICATIONS].get("publications", ()):
            word = {"publish": "published", "rollback": "rolled back"}.get(str(row.get("kind")), str(row.get("kind")))
            where = f"snapshot {row.get('base_snapshot_id')} → {row.get('result_snapshot_id')}"
            state = "" if row.get("state") == "committed" else f" ({row.get('state')})"
            many = _counted(row.get("partitions", ()), "partition")
            facts.append((word + state, f"{self.who(row.get('person'))}, {row.get('settled_at')}, {many}, {where}"))


# --------------------------------------------------------------------------------------------------------- checksums


def is_like(one: Mapping[str, Any], other: Mapping[str, Any], tolerance: str | None) -> bool:
    """Whether two checksums are of the same rows; sums of doubles may differ by the tolerance."""
    if any(one[name] != other[name] for name in ("rows", "upper", "lower")):
        return False
    sums, others = one.get("doubles", ()), other.get("doubles", ())
    if not one["rows"]:
        return True
    return len(sums) == len(others) and all(_is_near(a, others[n], tolerance or "0") for n, a in enumerate(sums))


def _is_near(one: Sequence[Any], other: Sequence[Any], tolerance: str) -> bool:
    (a, count), (b, other_count) = one, other
    if count != other_count or not all(math.isfinite(float(text)) for text in (a, b)):
        return (a, count) == (b, other_count)
    first, second, limit = Fraction(float(a)), Fraction(float(b)), Fraction(tolerance.rstrip("%"))
    if tolerance.endswith("%"):
        limit *= max(abs(first), abs(second)) / 100
    return abs(first - second) <= limit


# ------------------------------------------------------------------------------------------------ members of campaigns

TARGET_FIELDS = ("base_snapshot_id", "expected_part", "fingerprints", "total_partitions")
INPUT_FIELDS = (
    "fingerprints", "rows", "bytes", "file_count", "snapshot_id", "files_part", "era_of", "schemas", "counts",
)  # fmt: skip


def derive_manifest(campaign: Mapping[str, Any], digest: str, product: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a member's run: the sealed one, with only these fields from what was found."""
    (sealed,) = (one["manifest"] for one in campaign["members"] if one["product"] == product)
    target = {**sealed["target"], **{name: found["target"][name] for name in TARGET_FIELDS}}
    pins = [{**pin, **{name: found["inputs"][pin["name"]][name] for name in INPUT_FIELDS}} for pin in sealed["inputs"]]
    return {**sealed, "campaign": digest, "as_of": found["as_of"], "target": target, "inputs": pins}


def find_drift(
    campaign: Mapping[str, Any], product: str, found: Mapping[str, Any], intents: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Where a member reads or replaces something that nobody approved."""
    (member,) = (one for one in campaign["members"] if one["product"] == product)
    target, reads = member["manifest"]["target"], {one["input"]: one for one in member["reads"]}
    for name in ("table_uuid", "schema_id", "spec_id"):
        if target[name] != found["target"][name]:
            yield f"the target has another {name} than the campaign"
    for name in _changed(target["table"], target["fingerprints"], found["target"]["fingerprints"], found):
        yield f"the scope {name} was written after the campaign was planned"
    for pin in member["manifest"]["inputs"]:
        now, live = found["inputs"][pin["name"]], pin["name"] in member["live_inputs"]
        if pin.get("table_uuid") != now["table_uuid"]:
            yield f"input {pin['name']} is another table than in the campaign"
        if pin["name"] not in reads and not pin.get("own") and not live:
            for name in _changed(pin["location"], pin["fingerprints"], now["fingerprints"], found):
                yield f"input {pin['name']} changed in {name} after the campaign was planned"
    for read in member["reads"]:
        yield from _drift_of_read(read, member, found, intents)


def _drift_of_read(
    read: Mapping[str, Any], member: Mapping[str, Any], found: Mapping[str, Any], intents: Mapping[str, Any]
) -> Iterator[str]:
    """The same for a table that another member writes, or the member's own earlier output."""
    key = read["input"]
    now, named = found["reads"][key], found["publications"].get(read["from_run"]) or {"partitions": {}}
    if now["snapshot_id"] != found["inputs"][key]["snapshot_id"]:
        yield f"input {key} was looked at in two snapshots"
    if key not in member["live_inputs"]:
        for name in _changed(read["table"], read["fingerprints"], now["fingerprints"], found):
            yield f"input {key} changed in {name} after the campaign was planned"
    for name in read["published"]:
        if name not in named["partitions"]:
            yield f"input {key}: {name} is not what the run of {read['from_run']} published"
            continue
        added = intents[named["partitions"][name]["detail"]]["add"].get(name, ())
        same = sorted(map(list, now["files"].get(name, ()))) == sorted(map(list, added))
        if not same and not found["compacted"].get(read["table"], {}).get(name):
            yield f"input {key}: {name} was written after {read['from_run']} was published"


def _changed(
    table: str, sealed: Mapping[str, str], now: Mapping[str, str], found: Mapping[str, Any]
) -> Iterator[str]:  # fmt: skip
    """Partitions whose files are others than those that were sealed, other than by compaction."""
    compacted = found["compacted"].get(table, {})
    for name in sorted({*sealed, *now}):
        if sealed.get(name) != now.get(name) and not compacted.get(name):
            yield name


def _hex(text: Any) -> str:
    if not isinstance(text, str) or not _HEX.fullmatch(text):
        raise ValueError("expected a SHA-256")
    return text


def _link(content: bytes, entry: Mapping[str, Any], previous: str, seq: int) -> str:
    run = sha256(entry["run_id"].encode()) if entry["run_id"] is not None else None
    return _linked(sha256(content), run, previous, seq)


def _linked(content: str, run: str | None, previous: str, seq: int) -> str:
    return sha256(
        canonical({"content": content, "previous": previous, "run": run if run is None else _hex(run), "seq": seq})
    )


def _strange(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {_shown(str(problem))}"


def _counted(things: Sequence[Any], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _paths(files: Iterable[Sequence[Any]] | None) -> set[str]:
    return {str(path) for _, path, _ in files or ()}


# ------------------------------------------------------------------------------------------------------- for people


def lines(report: Report) -> list[str]:
    """The outcome for people."""
    if report.ok:
        told = [f"✓ {_counted(report.members, 'member')} verified, signed by {report.signed_by}"]
    else:
        told = [f"✗ this bundle does not verify: {_counted(report.problems, 'problem')}"]
        told += [f"  {one.member or 'the bundle'}: {one.problem}" for one in report.problems]
    width = max((len(name) for name, _ in report.facts), default=0)
    told += [f"  {name.ljust(width)}  {what}" for name, what in report.facts]
    told += [f"! {warning}" for warning in report.warnings]
    # what people typed is in it, and a terminal obeys more than it shows
    return [*map(_plain, told), f"verifier sha256 {own_digest()}: compare it with the one published with Errata"]


def main(argv: Sequence[str] | None = None) -> int:
    """The command line: 0 when all is well, 1 when something is wrong, 2 when it was not asked properly."""
    parser = argparse.ArgumentParser(prog="verify.py", description="Verify an evidence bundle of Errata.")
    parser.add_argument("bundle")
    parser.add_argument("--key", action="append", required=True, help="a public key (PEM); repeatable")
    parser.add_argument("--head", action="append", default=[], help="a signed head that was kept elsewhere; repeatable")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    if importlib.util.find_spec("cryptography") is None:
        sys.stderr.write("the package cryptography is missing: pip install cryptography\n")
        return 2
    try:
        content = _read(given.bundle, MAX_BYTES)
        keys, heads = {one: _read(one, 1 << 16) for one in given.key}, {one: _read(one, 1 << 20) for one in given.head}
    except OSError as problem:
        sys.stderr.write(f"cannot be read: {problem}\n")
        return 2
    if problem_with := unusable(keys, heads):
        sys.stderr.write(f"{problem_with}\nthe bundle was not judged\n")
        return 2
    report = verify(content, list(keys.values()), list(heads.values()))
    text = json.dumps(report.data(), indent=2) if given.json else "\n".join(lines(report))
    sys.stdout.write(text + "\n")
    return 0 if report.ok else 1


def _read(path: str, most: int) -> bytes:
    with open(path, "rb") as stream:  # noqa: PTH123 (as above)
        return stream.read(most + 1)


if __name__ == "__main__":
    sys.exit(main())
