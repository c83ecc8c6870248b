"""The suite is tested in turn: each bug planted in a copy of the source is noticed by the tests named for it."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import symtable
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sabotage.plants import PLANTS, Plant

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
_FAILED = 1
"""What pytest answers when tests failed; anything above means that they did not run."""


@dataclass
class Copy:
    """The source, to be spoilt."""

    place: Path
    noticed: list[str] = field(default_factory=list)
    survived: list[str] = field(default_factory=list)

    def run(self, *tests: str) -> subprocess.CompletedProcess[str]:
        """These tests on the copy, in a process of their own."""
        environment = {**os.environ, "PYTHONPATH": str(self.place), "PYTHONDONTWRITEBYTECODE": "1"}
        base = self.place.parent / "tests"
        where = f"import errata, sys; sys.exit(0 if errata.__file__.startswith({str(self.place)!r}) else 3)"
        subprocess.run([sys.executable, "-c", where], env=environment, check=True)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--basetemp={base}", *tests]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """One copy for all; each plant is taken out again."""
    place = tmp_path_factory.mktemp("sabotage") / "src"
    shutil.copytree(SOURCE, place, ignore=shutil.ignore_patterns("__pycache__"))
    made = Copy(place)
    yield made
    total = len(made.noticed) + len(made.survived)
    if total:
        print(f"\n{len(made.noticed)} of {total} planted bugs were noticed")  # noqa: T201  the figure is the point


def spoilt(plant: Plant) -> str:
    """The file with the bug in it."""
    text = (SOURCE / "errata" / plant.file).read_text()
    found = text.count(plant.find)
    assert found == 1, f"{plant.file}: expected the text of the plant once, found it {found} times"
    return text.replace(plant.find, plant.put)


def undefined_names(text: str, file: str) -> set[str]:
    """The names that a module uses and nobody defines: they would raise NameError where they are used."""
    module = symtable.symtable(text, file, "exec")
    scopes, globally, used = [module], {"__file__", "__name__"}, set()
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if (scope is module and symbol.is_local()) or (symbol.is_declared_global() and symbol.is_assigned()):
                globally.add(symbol.get_name())
            elif symbol.is_global() and symbol.is_referenced():
                used.add(symbol.get_name())
    return used - globally - set(dir(builtins))


def test_a_name_that_nobody_defines_is_found() -> None:
    """In any scope; a name of another function is not defined here."""
    text = "import os\ndef one(a):\n    b = a\n    return [b for c in os.sep if len(c)]\n"
    assert undefined_names(text, "one.py") == set()
    assert undefined_names(f"{text}def two():\n    return b, gone(os)\n", "two.py") == {"b", "gone"}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "-"))
def test_a_plant_fits_the_source(plant: Plant) -> None:
    """Whoever changes a sabotaged line brings its plant along; what is planted runs; its tests are there."""
    text = spoilt(plant)
    if plant.file.endswith(".java"):
        # the JVM compiles it, and whether it does is seen when it is planted
        assert [text.count(sign) for sign in "{(["] == [text.count(sign) for sign in "})]"]
    else:
        compile(text, plant.file, "exec")
        # a NameError would be noticed by any test, and would say nothing about the bug
        assert undefined_names(text, plant.file) == set()
    for test in plant.noticed_by:
        file, _, name = test.partition("::")
        name = name.rpartition("::")[2].partition("[")[0]
        is_contract = file.endswith("test_contract.py")
        text = (ROOT / (file.replace("test_contract", "contract") if is_contract else file)).read_text()
        if "::Test" in test:  # the rules of a contract are inherited
            text += "".join(one.read_text() for one in (ROOT / "src/errata/testing/contracts").glob("*.py"))
        assert f"def {name}(" in text or not name, f"{test} is not there"


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_without_a_bug_the_tests_pass(copy: Copy) -> None:
    """Else they would notice anything."""
    tests = sorted({test for plant in PLANTS for test in plant.noticed_by})
    done = copy.run(*tests)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "-"))
def test_a_planted_bug_is_noticed(copy: Copy, plant: Plant) -> None:
    """The named tests fail; a bug that lives on is a test that is missing."""
    file = copy.place / "errata" / plant.file
    file.write_text(spoilt(plant))
    try:
        done = copy.run(*plant.noticed_by)
    finally:
        shutil.copyfile(SOURCE / "errata" / plant.file, file)
    assert "CompileException" not in done.stdout, f"{plant.name}: what is planted is no Java\n{done.stdout[-3000:]}"
    (copy.noticed if done.returncode == _FAILED else copy.survived).append(plant.name)
    assert done.returncode == _FAILED, f"{plant.name}: not noticed\n{done.stdout[-3000:]}"
