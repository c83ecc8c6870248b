"""By which names the files of a source name data subjects: in columns, or in the messages of a recorded topic. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from errata.model.product import Input

KEY, VALUE = "key", "value"
"""Columns of a recorded topic; those of a run that reads it are kafka_key and the fields of the value."""


@dataclass(frozen=True, slots=True)
class SubjectNames:
    """Names by every spelling that files have had for them."""

    columns: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()  # of the JSON objects in key and value: the files are a recorded topic
    is_log: bool = False  # its values are changes: the fields are those of the rows before and after

    def __or__(self, other: SubjectNames) -> SubjectNames:
        """The names of both."""
        return SubjectNames(
            tuple(dict.fromkeys((*self.columns, *other.columns))),
            tuple(dict.fromkeys((*self.fields, *other.fields))),
            self.is_log or other.is_log,
        )

    def find_in(self, columns: Sequence[str]) -> SubjectNames | None:
        """What a file with these columns has of them, as it spells its columns; None if it has nothing.

        >>> SubjectNames(("Who",), ("who",)).find_in(["id", "WHO"])
        SubjectNames(columns=('WHO',), fields=(), is_log=False)
        """
        wanted = {name.lower() for name in self.columns}
        found = tuple(name for name in columns if name.lower() in wanted)
        fields = self.fields if VALUE in columns else ()
        return replace(self, columns=found, fields=fields) if found or fields else None

    def describe(self) -> str:
        """What a file lacks in which nobody can look for subjects."""
        return f"column {' or '.join(self.columns or (VALUE,))}"


def list_subject_names(source: Input) -> SubjectNames:
    """The names of an input that reads a recording and names its subjects."""
    renamed = [old for era in source.eras for old, new in era.rename.items() if new in source.subjects]
    names = (*source.subjects, *renamed)
    if source.cdc is not None:
        return SubjectNames(fields=names, is_log=True)
    if source.value is None:
        return SubjectNames(names)
    of_record = {"kafka_key": KEY} | ({VALUE: VALUE} if source.value.format == "text" else {})
    columns = tuple(of_record[name] for name in names if name in of_record)
    return SubjectNames(columns, tuple(name for name in names if name not in of_record))
