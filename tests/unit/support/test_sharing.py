"""Two processes share a suite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = "from support.sharing import add_options as pytest_addoption, run_shared as pytest_runtestloop\n"
TEST = """
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def module():
    yield
    with Path("ran").open("a") as ran:
        ran.write(f"{__name__}\\n")

@pytest.mark.parametrize("n", [1, 2])
def test(module, n):
    pass
"""


def test_two_processes_run_every_file_once_and_whole(tmp_path: Path) -> None:
    """Whatever the order in which they get there, each file is run by one of them, and its fixtures end with it."""
    suite, taken = tmp_path / "suite", tmp_path / "taken"
    suite.mkdir()
    taken.mkdir()
    (suite / "conftest.py").write_text(CONFTEST)
    names = [f"test_{n}" for n in range(6)]
    for name in names:
        (suite / f"{name}.py").write_text(TEST)
    options = f"-q -p no:cacheprovider -o pythonpath={Path(__file__).parents[2]} --share={taken}"
    command = [sys.executable, "-m", "pytest", *options.split()]
    both = [
        subprocess.Popen([*command, *order], cwd=suite, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for order in ([], ["--last-file-first"])
    ]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted((suite / "ran").read_text().split()) == names
