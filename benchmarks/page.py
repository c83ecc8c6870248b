"""The page of figures: a head, and one section per question, each replaced when its question is asked again. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["HEAD", "merged"]

HEAD = """# Benchmarks

`make bench` writes this page, one section per question; `python -m benchmarks NAME… --into FILE` replaces some. Under
each section is when, where and with what it was measured.

- Figures are medians, with the lowest and highest round in brackets. Ratios are taken within a round, in alternating
  order, after warm rounds that do not count. Read ratios, not seconds.
- CPU is that of the process and all it started, the JVM included.
- Neighbours is the largest share of the machine that other processes used during a sample. Above 10 % a sample is busy,
  and its round is left out when enough quiet ones remain; the section says so when they do not.
- Everything is on one machine with local disk, and the catalog is JDBC on SQLite. S3 and clusters are not measured.
"""
_MARK = re.compile(r"^<!-- question: (\w+) -->\n", re.MULTILINE)


def merged(page: str, sections: Mapping[str, str], order: Sequence[str]) -> str:
    """The page with these sections in place of older ones."""
    pieces = _MARK.split(page)
    known = dict(zip(pieces[1::2], pieces[2::2], strict=True)) | sections
    texts = [f"<!-- question: {name} -->\n{known[name].strip()}\n" for name in order if name in known]
    return "\n".join([HEAD, *texts])
