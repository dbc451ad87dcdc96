"""The examples of the documentation run: those of Python and those of commands."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PROGRAM = ROOT / "target" / "debug" / "widemargin"

#: Needs packages that the tests do without, or is about data that no page can bring.
WITHOUT_PYTHON = {
    "docs/compare.md",
    "docs/distributed.md",
    "docs/machines/hidden-markov.md",
    "docs/machines/ranking.md",
}

#: Machines without a command.
WITHOUT_COMMAND = {"docs/machines/hidden-markov.md"}

#: Pages whose commands run here: their data is in the repository, and they take seconds with an
#: unoptimised program.
COMMANDS = [
    "docs/coming-from-libsvm.md",
    "docs/cross-validation.md",
    "docs/data.md",
    "docs/machines/all-in-one.md",
    "docs/machines/c-svc.md",
    "docs/machines/epsilon-svr.md",
    "docs/machines/fisher.md",
    "docs/machines/least-squares.md",
    "docs/machines/linear.md",
]

#: Pages of machines and operations need an example in both; others are about something else.
EXPECTED = [page for page in PAGES if page.parent.name == "machines" and page.name != "README.md"]


def blocks(page, language):
    """Return the blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and name(page) not in WITHOUT_PYTHON],
    ids=name,
)
@pytest.mark.filterwarnings("ignore")
def test_examples_of_python_run(page, tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    # One program a page: later blocks go on from earlier ones.
    code = "\n".join(blocks(page, "python"))
    exec(compile(code, name(page), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", [ROOT / page for page in COMMANDS], ids=name)
@pytest.mark.skipif(not PROGRAM.exists(), reason="the program was not built")
def test_commands_run(page, tmp_path):
    (tmp_path / "data").symlink_to(ROOT / "data")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    places = os.pathsep.join([str(PROGRAM.parent), os.environ["PATH"]])
    for block in blocks(page, "sh"):
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", block],
            cwd=tmp_path,
            env={**os.environ, "PATH": places},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"


@pytest.mark.parametrize("page", EXPECTED, ids=name)
def test_every_machine_has_an_example_in_python_and_of_a_command(page):
    assert blocks(page, "python"), "no example in Python"
    if name(page) in WITHOUT_COMMAND:
        return
    assert any("widemargin " in block for block in blocks(page, "sh")), "no command"
