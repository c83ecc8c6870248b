"""The project that is measured, as text: a daily total per account, a few checks, and a fuller set of rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["columns", "in_waves", "product", "project", "transform"]

_PROJECT = """
project: bench
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {type: jdbc, uri: "sqlite:///.errata/catalog.db", warehouse: .errata/warehouse}
spark:
  master: "local[CORES]"
  conf: {CONF}
people: single-user
limits: {max_partitions: 50000}
CHUNKS
"""
_PRODUCT = """
product: NAME
owner: bench
target:
  table: lake.bench.daily
  partition: {column: day, grain: day}
  key: [day, account]
transform: {call: "transforms.daily:build", version: 1.0.0}
inputs:
  events: {table: lake.bench.events, partition: day}
checks:
  - {metric: rowCount, mustBeGreaterThan: 0}
  - {metric: nullValues, column: account, mustBe: 0}
  - {metric: nullValues, column: total, mustBe: 0}
  - {name: no_negative, expression: "total < 0", mustBe: 0}
"""
_FULL = """
reconcile:
  - {name: amount, input: events, source: "sum(amount)", target: "sum(total)", tolerance: 0}
compare:
  - {name: total, metric: "sum(total)", warn: "50%"}
"""
_UNIQUE = """
  - {metric: duplicateValues, columns: [account, day], mustBe: 0}
"""
_TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, events):
    return events.groupBy("day", "account").agg(
        F.sum("amount").cast("decimal(18,2)").alias("total"),
        F.count("*").alias("n"),
        F.min("amount").alias("low"),
        F.max("amount").alias("high"),
    )PADDING
"""
# hex digits of a hash do not compress, so the bytes are really there
_PADDING = '.withColumn("padding", F.substring(F.repeat(F.sha2(F.concat_ws("/", "day", "account"), 512), 16), 1, SIZE))'


def project(cores: int, conf: Mapping[str, str], chunks: str) -> str:
    """``errata.yaml``."""
    told = ", ".join(f'{key}: "{value}"' for key, value in conf.items())
    return _PROJECT.replace("CORES", str(cores)).replace("CONF", told).replace("CHUNKS", chunks)


def product(name: str, kind: str = "plain", copy: str = "") -> str:
    """A product file; ``unique`` adds a check of the key, ``full`` a reconciliation and a comparison with before."""
    key = "  key: [day, account]\n"
    text = _PRODUCT.replace("NAME", name).replace(key, f"{key}  copies: [{copy}]\n" if copy else key)
    return text + {"plain": "", "unique": _UNIQUE.lstrip("\n"), "full": _FULL}[kind]


def in_waves(name: str, size: int) -> str:
    """A product file that publishes this many days at a time, without a person."""
    return f"{product(name)}publish: {{manual: false, waves: {{size: {size}, release: none}}}}\n"


def transform(note: int) -> str:
    """The transform, with this many characters of padding in every row."""
    return _TRANSFORM.replace("PADDING", _PADDING.replace("SIZE", str(note)) if note else "")


def columns(note: int) -> str:
    """The target's columns."""
    plain = "day date, account bigint, total decimal(18,2), n bigint, low decimal(12,2), high decimal(12,2)"
    return plain + (", padding string" if note else "")
