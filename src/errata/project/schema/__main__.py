"""Write the JSON schemas: ``*.schema.json`` in this folder."""

from __future__ import annotations

from errata.project.schema import FOLDER, schemas

for _name, _content in schemas().items():
    (FOLDER / _name).write_text(_content, encoding="utf-8")
