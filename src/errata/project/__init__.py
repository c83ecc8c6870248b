"""Project files: what people write, read strictly.

Decides what ``errata.yaml`` and ``products/*.yaml`` may say and turns them into the values of
``errata.model.product``; says everything that is wrong at once, with file and line. Touches the files and the
environment only; whether the tables exist is asked by ``errata.project.check`` through a reader that the caller
brings. pydantic and ruamel.yaml are known here and nowhere else.

::

    bytes ──▶ tree ──▶ environment ──▶ files (pydantic) ──▶ rules, checks ──▶ Project
              lines     ${NAME}         keys and types       what takes more than one key
"""

from __future__ import annotations

from errata.project.load import load_project
from errata.project.problems import Problem

__all__ = ["Problem", "load_project"]
