"""Read a data file in small batches, with the columns that pyiceberg would give.

pyiceberg decodes a file as a whole before it gives the first batch. Here a Parquet file without deletes is read page by
page, so that memory does not grow with the file or with its row groups. pyiceberg's own functions choose the columns by
their ids, and cast and fill them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table

_MOST_ROWS, _MOST_BYTES = 32_768, 4 * 2**20
"""Of a batch; the hash of a row takes several times its bytes."""
_READ_BYTES = 2**20
"""Read from the file at once, for each column."""


def read_batches(
    table: Table, task: FileScanTask, wanted: BooleanExpression, projected: Schema
) -> Iterator[pa.RecordBatch]:
    """The wanted rows of a data file, in these columns of the current schema."""
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.manifest import FileFormat

    if task.delete_files or task.file.file_format != FileFormat.PARQUET:
        # one file at a time, because a scan of all of them would read ahead without a limit
        yield from ArrowScan(table.metadata, table.io, projected, wanted).to_record_batches([task])
    else:
        yield from _stream_parquet(table, task, wanted, projected)


def _stream_parquet(
    table: Table, task: FileScanTask, wanted: BooleanExpression, projected: Schema
) -> Iterator[pa.RecordBatch]:
    """As ``_task_to_record_batches`` of pyiceberg does it, except for how the file is read."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq
    from pyiceberg.expressions.visitors import bind, extract_field_ids, translate_column_names
    from pyiceberg.io.pyarrow import (
        _get_column_projection_values,
        _to_requested_schema,
        expression_to_pyarrow,
        pyarrow_to_schema,
    )
    from pyiceberg.schema import prune_columns
    from pyiceberg.table import DOWNCAST_NS_TIMESTAMP_TO_US_ON_WRITE
    from pyiceberg.utils.config import Config

    metadata, file = table.metadata, task.file
    chosen = Config().get_bool(DOWNCAST_NS_TIMESTAMP_TO_US_ON_WRITE)
    is_coarse = metadata.format_version <= 2 if chosen is None else chosen  # whether nanoseconds are cut
    with table.io.new_input(file.file_path).open() as stream:
        fragment = ds.ParquetFileFormat().make_fragment(stream)
        stored = pyarrow_to_schema(
            fragment.physical_schema,
            metadata.name_mapping(),
            downcast_ns_timestamp_to_us=is_coarse,
            format_version=metadata.format_version,
        )
        constants = _get_column_projection_values(
            file, projected, metadata.schema(), metadata.specs().get(file.spec_id), stored.field_ids
        )
        bound = bind(metadata.schema(), wanted, case_sensitive=True)
        by_names = translate_column_names(bound, stored, case_sensitive=True, projected_field_values=constants)
        chosen_rows = expression_to_pyarrow(bind(stored, by_names, case_sensitive=True), stored)
        present = prune_columns(stored, projected.field_ids | extract_field_ids(bound), select_full_types=False)
        part = fragment.subset(chosen_rows)  # the statistics of a row group may say that it has no such row
        parquet = pq.ParquetFile(stream, metadata=fragment.metadata, buffer_size=_READ_BYTES, pre_buffer=False)
        for batch in parquet.iter_batches(
            batch_size=_choose_rows(fragment.metadata),
            row_groups=[one.id for one in part.row_groups],
            columns=[column.name for column in present.columns],
            use_threads=False,
        ):
            for found in pa.Table.from_batches([batch]).filter(chosen_rows).combine_chunks().to_batches():
                if found.num_rows:
                    yield _to_requested_schema(
                        projected,
                        present,
                        found,
                        downcast_ns_timestamp_to_us=is_coarse,
                        projected_missing_fields=constants,
                        allow_timestamp_tz_mismatch=True,
                    )


def _choose_rows(footer: Any) -> int:
    """Rows of a batch; fewer where rows are wide."""
    groups = (footer.row_group(n) for n in range(footer.num_row_groups))
    widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(_MOST_ROWS, _MOST_BYTES // max(widest, 1)))
