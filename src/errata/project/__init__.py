"""Project files: ``errata.yaml`` and ``products/*.yaml``, read strictly.

Reports everything that is wrong at once, with file and line. Touches the files and the environment only; whether the
tables exist is asked by ``check`` through a reader that the caller brings. The only package that uses pydantic and
ruamel.yaml.

::

    bytes ──▶ yaml.tree ──▶ yaml.environment ──▶ files (pydantic) ──▶ build ──▶ Project
              lines         ${NAME}              keys and types       what takes more than one key
"""

from __future__ import annotations

from errata.project.load import load_project
from errata.project.problems import ProjectProblem

__all__ = ["ProjectProblem", "load_project"]
