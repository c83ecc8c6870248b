from __future__ import annotations

import json

import pytest

from errata.errors import ProjectFileError
from errata.project import load_project
from unit.project.conftest import PRODUCT, PROJECT, Write
from unit.project.test_load import problems_of

CANARY = "c4nary/p@ss word"
WITH_SECRET = PROJECT.replace("sqlite:///.errata/ledger.db", "postgresql+psycopg://errata:${DB_PASSWORD}@db/errata")


def test_variables_fill_whole_values_and_parts(write: Write):
    """`${NAME}` is replaced wherever it stands in a value."""
    root = write(
        project=WITH_SECRET.replace(".errata/warehouse", "'${WAREHOUSE}'"),
        product=PRODUCT.replace("raw/transactions", "s3://${BUCKET}/transactions"),
    )
    project = load_project(root, environ={"DB_PASSWORD": "pw", "WAREHOUSE": "s3://w", "BUCKET": "raw-eu"})
    assert project.ledger == "postgresql+psycopg://errata:pw@db/errata"
    assert project.catalogs["lake"].warehouse == "s3://w"
    pattern = "s3://raw-eu/transactions/business_date={business_date}/*.parquet"
    assert project.products["fin.daily_revenue"].inputs[0].files == pattern


def test_the_process_environment_is_the_default(write: Write, monkeypatch: pytest.MonkeyPatch):
    """Without an explicit environment the process's own is used."""
    monkeypatch.setenv("DB_PASSWORD", "from-the-process")
    assert "from-the-process" in load_project(write(project=WITH_SECRET)).ledger


def test_numbers_may_come_from_the_environment(write: Write):
    """A variable may stand for a count."""
    root = write(also="limits: {max_partitions: '${MAX}'}\n")
    assert load_project(root, environ={"MAX": "7"}).limits.max_partitions == 7


def test_a_missing_or_empty_variable_is_named_with_its_line(write: Write):
    """The problem says which variable, and nothing else is said about that value."""
    root = write(project=WITH_SECRET.replace("finsight", "${PROJECT}"))
    assert problems_of(root, PROJECT="") == [
        "errata.yaml:1: project: the environment variable PROJECT is empty",
        "errata.yaml:2: ledger: the environment variable DB_PASSWORD is not set",
    ]
    (said,) = problems_of(write(also="limits: {max_partitions: '${a-b}'}\n"))
    assert (
        said
        == "errata.yaml:8: limits.max_partitions: expected the name of an environment variable as ${NAME}; found ${a-b}"
    )


def test_an_unquoted_variable_in_braces_is_explained(write: Write):
    """YAML ends the braces there; the message says what to do."""
    (said,) = problems_of(write(also="limits: {max_partitions: ${MAX}}\n"), MAX="7")
    assert said.startswith("errata.yaml:8: not YAML: ")
    assert said.endswith('; inside { } and [ ] a variable needs quotes: "${NAME}"')


def test_two_dollars_write_the_sign_itself(write: Write):
    """`$${NAME}` is text, and needs no variable."""
    root = write(also="spark: {conf: {spark.x: 'a$${HOME}b'}}\n")
    assert load_project(root, environ={}).spark_conf == {"spark.x": "a${HOME}b"}


def test_products_take_places_of_data_from_the_environment_and_nothing_else(write: Write):
    """Product files are copied into run manifests, so a secret cannot get in through one."""
    root = write(product=PRODUCT.replace("version: 2.4.1}", "version: 2.4.1, config: {token: '${TOKEN}'}}"))
    (said,) = problems_of(root, TOKEN=CANARY)
    assert said.startswith("products/daily_revenue.yaml:7: transform.config.token: ${TOKEN} is refused here")


@pytest.mark.parametrize(
    "project",
    [
        PROJECT.replace("sqlite:///.errata/ledger.db", "${SECRET}"),
        PROJECT.replace("type: jdbc", 'type: "${SECRET}"'),
        PROJECT.replace("finsight", "${SECRET}"),
        PROJECT.replace("[requester, operator]", '["${SECRET}"]'),
        PROJECT.replace("people:", "people: ${SECRET}\nx:"),
        PROJECT.replace("people:", "limits: {max_partitions: '${SECRET}'}\npeople:"),
        PROJECT.replace("people:", "limits: '${SECRET}'\npeople:"),
        PROJECT.replace("people:", "price: {core_hour_usd: '${SECRET}'}\npeople:"),
        PROJECT.replace("people:", "spark: {conf: [{a: '${SECRET}'}]}\npeople:"),
    ],
)
def test_a_value_from_the_environment_is_never_in_an_error(write: Write, project: str):
    """Wherever a secret lands in the wrong place, messages quote `${NAME}`."""
    assert "${SECRET}" in project
    with pytest.raises(ProjectFileError) as refused:
        load_project(write(project=project), environ={"SECRET": CANARY})
    said = "".join((str(refused.value), repr(refused.value), json.dumps(refused.value.fields), str(refused.value.hint)))
    assert "c4nary" not in said
    chain = (refused.value.__cause__, refused.value.__context__)
    assert all("c4nary" not in str(link) for link in chain)


def test_a_value_from_the_environment_in_a_product_is_never_in_an_error(write: Write):
    """A table name that does not fit is quoted as the file has it."""
    root = write(product=PRODUCT.replace("lake.fin.daily_revenue", '"${SECRET}"'))
    assert problems_of(root, SECRET=CANARY) == [
        'products/daily_revenue.yaml:4: target.table: expected catalog.namespace.table; found "${SECRET}"'
    ]


def test_a_loaded_project_hides_and_redacts_its_secrets(write: Write):
    """Neither repr nor redacted text has the value, however it is spelt."""
    catalog = "properties: {token: '${TOKEN}'}, type: jdbc"
    root = write(project=WITH_SECRET.replace("type: jdbc", catalog), also="spark: {conf: {spark.k: '${TOKEN}'}}\n")
    project = load_project(root, environ={"DB_PASSWORD": CANARY, "TOKEN": 't"k\\n'})
    assert CANARY in project.ledger
    assert "c4nary" not in repr(project)
    assert 't"k' not in repr(project)
    assert 't\\"k' not in repr(project)
    spelt = f"{CANARY} | c4nary%2Fp%40ss%20word | c4nary%2Fp%40ss+word | " + json.dumps(project.secrets["TOKEN"])
    hidden = "${DB_PASSWORD} | ${DB_PASSWORD} | ${DB_PASSWORD} | " + '"${TOKEN}"'
    assert project.redact(spelt) == hidden


def test_redaction_leaves_short_values_alone(write: Write):
    """A value of three characters would turn ordinary words into noise."""
    project = load_project(write(also="limits: {max_partitions: '${MAX}'}\n"), environ={"MAX": "100"})
    assert project.redact("100 rows") == "100 rows"
