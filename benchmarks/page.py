"""The page of figures: a head, and one section per question, each replaced when its question is asked again. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["HEAD", "merged"]

HEAD = """# Benchmarks

`make bench` writes this page, one section per question; `python -m benchmarks NAME… --into FILE` replaces single
sections. Each section ends with the date, the machine and the versions of its measurement.

- Figures are medians, with the lowest and highest round in parentheses. Ratios compare cases within one round, in
  alternating order, after warm-up rounds that do not count. Trust the ratios more than the seconds.
- CPU includes the process and everything that it started, also the JVM.
- Neighbours is the largest share of the machine that other processes used during a sample. Above 10 % a sample is busy.
  Busy rounds are left out if enough quiet ones remain; otherwise the section says how many were busy.
- Everything runs on one machine with a local disk, and the catalog is JDBC on SQLite. S3 and clusters are not measured.
"""
_MARK = re.compile(r"^<!-- question: (\w+) -->\n", re.MULTILINE)


def merged(page: str, sections: Mapping[str, str], order: Sequence[str]) -> str:
    """The page with these sections in place of older ones."""
    pieces = _MARK.split(page)
    known = dict(zip(pieces[1::2], pieces[2::2], strict=True)) | sections
    texts = [f"<!-- question: {name} -->\n{known[name].strip()}\n" for name in order if name in known]
    return "\n".join([HEAD, *texts])
