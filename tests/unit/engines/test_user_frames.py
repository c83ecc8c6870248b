"""An error of a transform shows the user's own frames, and nobody else's."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from errata.canonical import sha256
from errata.engines.failures import cause_of
from errata.engines.spark.compute.transforms import load_transform
from errata.engines.user_frames import describe_frames, find_user_frames
from unit.engines.test_failures import STAGE, FromJava

CODE = {
    "planned_transforms/daily.py": """import json

from planned_transforms import helpers


def build(ctx, raw):
    rate = helpers.read_rate(raw)
    return json.loads(rate)
""",
    "planned_transforms/helpers.py": """def read_rate(raw):
    return raw["rate"]
""",
    "planned_transforms/broken.py": "import json\n\nRATES = json.loads('{')\n",
}


@pytest.fixture
def planned(tmp_path: Path) -> tuple[bytes, str]:
    """The zip of a plan, and where it is unpacked from."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in {"planned_transforms/": "", **CODE}.items():
            archive.writestr(name, text)
    return buffer.getvalue(), str(tmp_path)


def _fail(planned: tuple[bytes, str], call: str, *arguments: Any) -> BaseException:
    content, cache = planned
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever the transform raises
        load_transform(content, sha256(content), call, Path(cache))(*arguments)
    return raised.value


def test_the_frames_are_those_of_the_planned_files(planned: tuple[bytes, str]) -> None:
    """By their path in the project, with line, function and source; frames of libraries and of Errata are left out."""
    error = _fail(planned, "planned_transforms.daily:build", None, {})
    assert describe_frames(find_user_frames(error, planned[0])) == (
        "\n  planned_transforms/daily.py:7, in build\n      rate = helpers.read_rate(raw)"
        '\n  planned_transforms/helpers.py:2, in read_rate\n      return raw["rate"]'
    )


def test_an_error_in_a_library_ends_at_the_line_that_called_it(planned: tuple[bytes, str]) -> None:
    """The library's own lines help nobody."""
    error = _fail(planned, "planned_transforms.daily:build", None, {"rate": "{"})
    assert isinstance(error, json.JSONDecodeError)
    assert [frame.place for frame in find_user_frames(error, planned[0])] == ["planned_transforms/daily.py:8"]


def test_an_error_while_importing_is_shown_as_well(planned: tuple[bytes, str]) -> None:
    """A module runs when it is imported."""
    error = _fail(planned, "planned_transforms.broken:build")
    assert [frame.place for frame in find_user_frames(error, planned[0])] == ["planned_transforms/broken.py:3"]


def test_frames_of_a_python_worker_are_taken_from_its_report(planned: tuple[bytes, str]) -> None:
    """Java carries the traceback of the worker as text; the cause is what the worker raised."""
    place = f"/srv/p/.errata/cache/code-{sha256(planned[0])}.zip/planned_transforms/helpers.py"
    worker = (
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 99, in main\n    process()\n'
        f"  File \"{place}\", line 2, in read_rate\nKeyError: 'rate'\n"
    )
    error = FromJava(STAGE, worker)
    assert describe_frames(find_user_frames(error, planned[0])) == (
        '\n  planned_transforms/helpers.py:2, in read_rate\n      return raw["rate"]'
    )
    assert cause_of(error) == "KeyError: 'rate'"


@pytest.mark.parametrize(
    "text",
    [
        "AnalysisException: [UNRESOLVED_COLUMN] `amout`. SQLSTATE: 42703; line 2 pos 6;\n'Project",
        "ParseException: \n[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 2, pos 9)",
        "SparkArithmeticException: [DIVIDE_BY_ZERO] by zero.\n== SQL (line 2, position 3) ==\nsum(amout)",
    ],
)
def test_an_error_in_a_query_shows_the_line_of_its_file(text: str) -> None:
    """From whatever Spark says about the place."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("transforms/daily.sql", "SELECT\n  sum(amout)\nFROM raw")
    frames = find_user_frames(FromJava(text), buffer.getvalue(), "transforms/daily.sql")
    assert describe_frames(frames) == "\n  transforms/daily.sql:2\n      sum(amout)"


def test_without_a_frame_of_the_user_there_is_nothing_to_show() -> None:
    """An error that only Errata and libraries had a part in."""
    assert find_user_frames(FromJava(STAGE, "java.lang.IllegalStateException: closed")) == ()
