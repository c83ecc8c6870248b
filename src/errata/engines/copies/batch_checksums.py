"""Checksums of Arrow batches, by the same text and hash of a row as in Python and SQL.

Everything but the hash itself is computed column by column: a row in Python would take longer than its way to the
warehouse.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from errata.model.copy.checksum import Checksum, DoubleSum
from errata.model.copy.row_text import is_approximate
from errata.model.copy.table import CopyTable
from errata.model.partition import Grain, name_partition

if TYPE_CHECKING:
    import pyarrow as pa

try:
    # the same function as hashlib's, without the half microsecond that OpenSSL takes to get ready for each row
    from _md5 import md5 as _md5  # type: ignore[import-not-found]
except ImportError:
    _md5 = partial(hashlib.md5, usedforsecurity=False)

_WORDS = 4
"""32-bit words of a hash; their sums cannot overflow."""


class BatchChecksums:
    """Adds up the checksums of batches, partition by partition."""

    def __init__(self, copy: CopyTable) -> None:
        self._copy = copy
        self._exact = [column for column in copy.columns if not is_approximate(column.type)]
        self._doubles = [column for column in copy.columns if is_approximate(column.type)]
        self._sums: dict[str, list[Any]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not batch.num_rows:
            return
        places = _encode_partitions(batch.column(self._copy.partition.name), self._copy.grain)
        columns = {"place": places.indices}
        # the partition column is always one of them
        texts = [_write_texts(batch.column(column.name), column.type) for column in self._exact]
        row_texts = pc.binary_join_element_wise(*texts, pa.scalar("", pa.large_string()))
        columns |= {f"word{n}": word for n, word in enumerate(_hash_texts(row_texts))}
        for n, column in enumerate(self._doubles):
            columns[f"double{n}"] = pc.cast(batch.column(column.name), pa.float64())
        wanted = [(f"word{n}", "sum") for n in range(_WORDS)] + [("word0", "count")]
        wanted += [(f"double{n}", how) for n in range(len(self._doubles)) for how in ("sum", "count")]
        # rows without a partition value have no index, and are a group as well
        for row in pa.table(columns).group_by("place").aggregate(wanted).to_pylist():
            value = None if row["place"] is None else places.dictionary[row["place"]].as_py()
            self._add(name_partition(value, self._copy.grain), row)

    def _add(self, name: str, row: dict[str, Any]) -> None:
        found = [row["word0_count"], *(row[f"word{n}_sum"] for n in range(_WORDS))]
        for n in range(len(self._doubles)):
            found += [row[f"double{n}_sum"] or 0.0, row[f"double{n}_count"]]
        known = self._sums.get(name)
        self._sums[name] = found if known is None else [a + b for a, b in zip(known, found, strict=True)]

    @property
    def checksums(self) -> dict[str, Checksum]:
        """Checksums of the partitions that had rows."""
        return {name: _build_checksum(*sums) for name, sums in sorted(self._sums.items())}


def _build_checksum(rows: int, first: int, second: int, third: int, fourth: int, *doubles: Any) -> Checksum:
    pairs = zip(doubles[::2], doubles[1::2], strict=True)
    sums = tuple(DoubleSum(total, values) for total, values in pairs)
    return Checksum(rows, first * 2**32 + second, third * 2**32 + fourth, sums)


def _encode_partitions(values: pa.Array, grain: Grain) -> Any:
    """Values that name the partitions of rows, each once, and for each row which one it has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(values.type):
        values = pc.floor_temporal(values, unit=grain.value if grain.is_time else "microsecond")
    return values.dictionary_encode()


def _write_texts(values: pa.Array, kind: str) -> pa.Array:
    """The text of each value with its length; ``N`` for NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    match kind.partition("(")[0]:
        case "decimal":
            texts = _write_decimals(values)
        case "timestamp" | "timestamptz":
            texts = pc.cast(pc.cast(values, pa.timestamp("us", values.type.tz)).view(pa.int64()), pa.large_string())
        case _:
            texts = pc.cast(values, pa.large_string())
    lengths = pc.cast(pc.utf8_length(texts), pa.large_string())
    joined = pc.binary_join_element_wise(lengths, texts, pa.scalar(":", pa.large_string()))
    return pc.fill_null(joined, pa.scalar("N", pa.large_string()))


def _write_decimals(values: pa.Array) -> pa.Array:
    """Decimals with all digits of their scale; Arrow's own text has exponents."""
    import pyarrow as pa
    import pyarrow.compute as pc

    scale, plain = values.type.scale, pa.large_string()
    # the same bits as whole numbers
    whole = pa.Array.from_buffers(pa.decimal128(38, 0), len(values), values.buffers(), offset=values.offset)
    digits = pc.cast(whole, plain)
    if not scale:
        return digits
    signs = pc.if_else(pc.starts_with(digits, "-"), pa.scalar("-", plain), pa.scalar("", plain))
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    before = pc.utf8_slice_codeunits(padded, 0, -scale)
    after = pc.utf8_slice_codeunits(padded, -scale)
    joined = pc.binary_join_element_wise(before, after, pa.scalar(".", plain))
    return pc.binary_join_element_wise(signs, joined, pa.scalar("", plain))


def _hash_texts(texts: pa.Array) -> list[pa.Array]:
    """The four 32-bit words of the hash of each text, in order."""
    import pyarrow as pa

    texts = pa.compute.cast(texts, pa.large_binary())
    _, offsets, data = texts.buffers()
    places = array("q")
    places.frombytes(memoryview(offsets)[texts.offset * 8 : (texts.offset + len(texts) + 1) * 8])
    content = memoryview(data) if data is not None else memoryview(b"")
    hashes = b"".join([_md5(content[start:end]).digest() for start, end in pairwise(places)])
    words = array("I")
    words.frombytes(hashes)
    if sys.byteorder == "little":
        words.byteswap()
    parts = (words[n::_WORDS] for n in range(_WORDS))
    return [pa.Array.from_buffers(pa.uint32(), len(part), [None, pa.py_buffer(part)]) for part in parts]
