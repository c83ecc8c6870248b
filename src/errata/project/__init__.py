"""Project files: ``errata.yaml`` and ``products/*.yaml``, read strictly.

Reports all problems at once, with file and line. Reads only the files and the environment; ``check`` looks up tables
through a reader that the caller provides. The only package that uses pydantic and ruamel.yaml.

::

    bytes ──▶ yaml.tree ──▶ yaml.environment ──▶ yaml.value_reader ──▶ build ──▶ Project
              lines         ${NAME}              keys and types        rules across keys

Each key is declared once, as a field of a value in ``errata.model``; ``forms`` has those that a file writes in another
form than the value. The reader derives a pydantic model from the declarations.
"""

from __future__ import annotations

from errata.project.load import load_project
from errata.project.problems import ProjectProblem

__all__ = ["ProjectProblem", "load_project"]
