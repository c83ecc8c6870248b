"""``erasure`` in errata.yaml and ``target.subjects`` in product files: whose rows may not come back."""

from __future__ import annotations

import pytest

from errata.model.product.erasure import ErasureSettings, build_hasher, compute_key_check
from errata.ports.tables import Column
from errata.project import load_project
from errata.project.check import check_project
from unit.project.conftest import PRODUCT, Write
from unit.project.test_check import Facts, Tables, with_transform
from unit.project.test_load import problems_of

ERASURE = "erasure: {table: lake.privacy.erased, key: keys/erasure}\n"
SUBJECTS = PRODUCT.replace("  key: [", "  subjects: [account_id]\n  key: [")


def test_a_product_names_its_subjects_and_the_project_their_list(write: Write):
    """Without them there is neither; the key is in no text of a project."""
    project = load_project(write(also=ERASURE, product=SUBJECTS))
    assert project.erasure == ErasureSettings("lake.privacy.erased", "keys/erasure")
    assert project.products["fin.daily_revenue"].target.subjects == ("account_id",)
    assert "keys/erasure" not in repr(project)
    assert load_project(write()).erasure is None


def test_a_variable_that_holds_the_key_need_not_be_set_by_those_who_do_not_judge(write: Write):
    """Only who hashes needs it."""
    root = write(also=ERASURE.replace("keys/erasure", '"${ERRATA_ERASURE_KEY}"'), product=SUBJECTS)
    assert load_project(root, environ={}).erasure == ErasureSettings("lake.privacy.erased", "${ERRATA_ERASURE_KEY}")


@pytest.mark.parametrize(
    "also, product, says",
    [
        ("", SUBJECTS, 'missing key "erasure" in errata.yaml'),
        ("erasure: {table: lake.privacy.erased}\n", PRODUCT, 'missing key "key"'),
        (ERASURE.replace("lake.", "sea."), PRODUCT, "expected a table of a catalog in errata.yaml"),
        (ERASURE.replace("table: lake.privacy.erased", "table: erased"), PRODUCT, "table"),
        (ERASURE, SUBJECTS.replace("[account_id]", "[account_id, account_id]"), "given twice"),
        (ERASURE, SUBJECTS.replace("s: [account_id]", "s: [business_date]"), "manifests name partitions"),
    ],
)
def test_what_cannot_work_is_refused_by_line(write: Write, also: str, product: str, says: str):
    """A product that names subjects nobody keeps a list of would be unprotected in silence."""
    assert says in str(problems_of(write(also=also, product=product)))


def test_a_hash_depends_on_the_key_and_says_nothing_without_it():
    """The same id under two keys has two hashes; the check of a key is the hash of no id."""
    one, other = build_hasher(b"a" * 64), build_hasher(b"b" * 64)
    assert one("A-17") == one("A-17") != other("A-17")
    assert compute_key_check(b"a" * 64) not in {one(text) for text in ("", "check", "subject")}


def test_the_list_and_the_columns_of_subjects_must_be_there(write: Write):
    """A date has no one text; a table that is no list, or not there, is named at its line."""
    root = with_transform(write(also=ERASURE, product=SUBJECTS.replace("[account_id]", "[acount_id, born_on]")))
    project = load_project(root)
    target = {"lake.fin.daily_revenue": Facts(columns=(*Facts().columns, Column("born_on", "date")))}

    def said(**tables: Facts) -> list[str]:
        return [str(one) for one in check_project(project, Tables(target | tables)) if one.level == "problem"]

    missing, nearest, kind = said()
    assert "lake.privacy.erased was not found" in missing
    assert 'nearest: "account_id"' in nearest
    assert "born_on is date" in kind
    assert "with a column subject" in said(**{"lake.privacy.erased": Facts()})[0]
    assert len(said(**{"lake.privacy.erased": Facts(columns=(Column("subject", "string"),))})) == 2
