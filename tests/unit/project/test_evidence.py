"""``evidence`` in errata.yaml: who signs, where heads go, and a variable that only signing commands need."""

from __future__ import annotations

import pytest

from errata.evidence.keys import generate_key_pair, load_signing_key
from errata.model.product.project import EvidenceSettings
from errata.project import load_project
from unit.project.conftest import PROJECT, Write
from unit.project.test_load import problems_of

PEM = "-----BEGIN PRIVATE KEY-----\nnot really\n-----END PRIVATE KEY-----\n"


def evidence(line: str) -> str:
    return f"{PROJECT}evidence: {line}\n"


def test_every_key_has_its_field(write: Write):
    """Heads are relative to the project; the lag is a length."""
    line = "{key: keys/signing, heads: ../heads, max_lag: 2h, subject_key: /run/secrets/people}"
    project = load_project(write(project=evidence(line)))
    heads = f"{project.root}/../heads"
    assert project.evidence == EvidenceSettings("keys/signing", heads, 7200, "/run/secrets/people")
    assert load_project(write()).evidence == EvidenceSettings()


def test_a_variable_that_holds_a_key_need_not_be_set_by_those_who_do_not_sign(write: Write):
    """Workers that run transforms have no signing key in their environment; only who signs misses it."""
    root = write(project=evidence('{key: "${ERRATA_SIGNING_KEY}", subject_key: "${ERRATA_SUBJECT_KEY}"}'))
    unset = load_project(root, environ={})
    assert (unset.evidence.key, unset.secrets) == ("${ERRATA_SIGNING_KEY}", {})
    empty = load_project(root, environ={"ERRATA_SIGNING_KEY": ""})
    assert empty.evidence.key == "${ERRATA_SIGNING_KEY}"
    there = load_project(root, environ={"ERRATA_SIGNING_KEY": PEM})
    assert there.evidence.key == PEM
    assert there.redact(f"found {PEM}") == "found ${ERRATA_SIGNING_KEY}"
    assert "not really" not in repr(there)


def test_a_key_may_stand_in_the_environment_with_its_lines(write: Write, tmp_path_factory: pytest.TempPathFactory):
    """As a PEM text, which no line of YAML has to hold."""
    place = tmp_path_factory.mktemp("keys")
    public = generate_key_pair(place / "signing")
    root = write(project=evidence('{key: "${ERRATA_SIGNING_KEY}"}'))
    project = load_project(root, environ={"ERRATA_SIGNING_KEY": (place / "signing").read_text()})
    assert load_signing_key(project.evidence.key or "", place).public == public


@pytest.mark.parametrize(
    "line, says",
    [
        ("{heads: heads}", 'missing key "key"'),
        ('{key: k, heads: "s3://bucket/heads"}', "expected a directory"),
        ("{key: k, max_lag: 0s}", "max_lag"),
        ("{key: k, max_lag: 1mo}", "max_lag"),
        ('{key: ""}', "the file of a key"),
        ("{keys: k}", "nearest"),
        ('{key: k, heads: "${NO_SUCH}"}', "NO_SUCH is not set"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_line(write: Write, line: str, says: str):
    """Mistakes in the file are found when it is read, not when the first head is due."""
    assert says in str(problems_of(write(project=evidence(line))))
