"""Read where the messages of a change log are: all of them, whatever the product's partitions. Reads metadata only.

Messages know nothing of the product's partitions, so every partition reads the whole log and gets its rows. In
estimates each has an equal share of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.canonical import digest_of
from errata.model.partition import Grain
from errata.model.product import Input
from errata.ports.tables import InputReader, InputState, PartitionSize


def read_message_log(source: Input, grain: Grain, partitions: Sequence[str], reader: InputReader) -> InputState:
    """The whole place, with a share for each partition if the input has partitions."""
    bare = replace(source, partition=None, columns={}, eras=(), rows=())
    state = reader.read_input(bare, grain, ())
    whole = state.whole or PartitionSize(0, 0, 0)
    if source.transactions_of is not None:
        # that more transactions ended says nothing about the rows of a partition
        return replace(state, whole=replace(whole, fingerprint=""), rows_known=False)
    assert source.cdc is not None  # noqa: S101 - the only other kind of message log
    if not source.cdc.follows_newest:
        # what is read at a named position stays the same, however the log grows
        whole = replace(whole, fingerprint=digest_of([state.location, source.cdc.at]))
    if source.partition is None:
        return replace(state, whole=whole, rows_known=False)
    count = max(1, len(partitions))
    share = PartitionSize(max(1, whole.rows // count), max(1, whole.bytes // count), whole.files, whole.fingerprint)
    return replace(
        state,
        whole=None,
        partitions=dict.fromkeys(partitions, share),
        column_type=source.columns.get(source.partition),
        rows_known=False,
        oldest=None,
    )
