"""The documentation: its Python runs on every engine, its excerpts are in the files they name, its tables are current.

The words after ``python`` at the head of a block say what it needs. A path is a file: of this repository, and then the
block must be an excerpt of it, or of the example engine, and then it is written there. Any other word is an engine. A
``text`` block is what the Python block before it prints.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from example_engine import EXAMPLE, FENCE, ROOT, blocks, environment, install, is_path

import ember_ml
from ember_ml import backend as backends
from ember_ml import cli, ops, reference
from ember_ml.backend import Backend
from ember_ml.nn.tensor import EmberTensor
from emberlint import cli as linter
from emberlint import config as configuration

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@every_page
def test_python_runs(
    page: Path, backend: Backend, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Compilers look for the module of a function, and torch's keeps it for each name.
    module = ModuleType(f"page_{PAGES.index(page)}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names: dict[str, Any] = vars(module)
    for block in blocks(page):
        if block.language == "text":
            assert capsys.readouterr().out == block.text, f"{page.name}:{block.line}"
        needed = set(block.words)
        if (
            block.language != "python"
            or any(map(is_path, needed))
            or not needed <= set(ember_ml.get_available_backends())
        ):
            continue
        ember_ml.set_backend(backend.name)
        capsys.readouterr()
        exec(compile("\n" * block.line + block.text, str(page), "exec"), names)


@every_page
def test_excerpts_are_in_their_files(page: Path) -> None:
    for block in blocks(page):
        for path in filter(is_path, block.words):
            if not path.startswith(f"{EXAMPLE}/"):
                assert block.text in (ROOT / path).read_text(encoding="utf-8"), f"{page.name}:{block.line}"


def test_the_example_engine_works(tmp_path: Path) -> None:
    program = "".join(block.text for block in blocks(ROOT / "docs" / "backends.md") if block.words == [EXAMPLE])
    install(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@every_page
def test_commands_exist(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for block in blocks(page):
        for line in block.text.splitlines() if block.language == "sh" else ():
            command = shlex.split(line, comments=True)
            if command[:1] == ["make"]:
                assert set(command[1:]) <= set(targets)
            if command[:1] == ["ember-ml"]:
                cli._parser().parse_args(command[1:])


_LINK = re.compile(r"\[[^\]]+\]\(([^)#:]+)\)")


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub("`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    for target in _LINK.findall(text):
        assert (page.parent / target).exists(), target


def test_reference_is_written_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "OWN", {"numpy": backends.OWN["numpy"]})
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "rules.md"
    page.write_text("before\n<!-- table: rules -->\nold\n<!-- end -->\nafter\n")
    command = ["reference", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*command, "--check"])
    assert reference.main() == 1
    assert "old" in page.read_text()
    monkeypatch.setattr(sys, "argv", command)
    assert reference.main() == 0
    assert page.read_text().startswith("before\n<!-- table: rules -->\n| dtype rule |")
    assert page.read_text().endswith("<!-- end -->\nafter\n")
    monkeypatch.setattr(sys, "argv", [*command, "--check"])
    assert reference.main() == 0
    text = (tmp_path / "docs" / "operations.md").read_text()
    assert "| `add(x, y, /)` | promoted |" in text


@pytest.mark.parametrize(
    ("page", "file", "rule"), [("emberlint.md", "model.py", "EMB102"), ("operators.md", "ratio.py", "EMB350")]
)
def test_the_linter_says_what_its_page_shows(
    page: str, file: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = blocks(ROOT / "docs" / page)
    source = next(block for block in found if block.words == [file])
    (tmp_path / file).write_text(source.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    configuration.load.cache_clear()
    assert linter.main([file, "--select", rule, "--no-cache"]) == 1
    assert capsys.readouterr().out == next(block.text for block in found if block.language == "console")


def test_a_port_does_what_its_page_shows(tmp_path: Path) -> None:
    shown = next(block.text for block in blocks(ROOT / "docs" / "porting.md") if block.language == "diff")
    lines = [(line[:1], line[1:] + "\n") for line in shown.splitlines()]
    file = tmp_path / "model.py"
    file.write_text("".join(text for mark, text in lines if mark != "+"), encoding="utf-8")
    assert linter.main(["port", str(file), "--from", "numpy"]) == 0
    assert file.read_text(encoding="utf-8") == "".join(text for mark, text in lines if mark != "-")


# The rows of the table of native operators, each on tensors of an engine or on EmberTensors of them.
OPERATORS = {
    "int64 + float32": lambda x: x("int64") + x("float32"),
    "int64 / int64": lambda x: x("int64") / x("int64"),
    "uint8 + 1.5": lambda x: x("uint8") + 1.5,
    "uint8 + 300": lambda x: x("uint8") + 300,
    "int64 @ float32": lambda x: x("int64") @ x("float32"),
    "bool - bool": lambda x: x("bool") - x("bool"),
    "int64 ** -1": lambda x: x("int64") ** -1,
    "float32 + [1.0, 2.0]": lambda x: x("float32") + [1.0, 2.0],  # noqa: RUF005 - an operator
}


# The rows of its table of indexing.
INDEXING: dict[str, Callable[[Any], Any]] = {
    "`x[::-1]`": lambda x: x[::-1],
    "`x[[0, 1]]`": lambda x: x[[0, 1]],
    "`x[5]`": lambda x: x[5],
    "`x[i]`, with `i` of the values 1 and 7": lambda x: x[ops.asarray([1, 7])],
}


def engine_table(rows: Collection[str]) -> dict[str, dict[str, str]]:
    """Cells by column and row of the table of the page on operators that has these rows."""
    lines = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    first = next(i for i, row in enumerate(cells) if row[0] in rows)
    table = cells[first : first + len(rows)]
    assert [row[0] for row in table] == list(rows)
    return {head.lower(): {row[0]: row[i] for row in table} for i, head in enumerate(cells[first - 2]) if head}


def assert_does(expected: str, run: Callable[[], Any], show: Callable[[Any], str]) -> None:
    """``run`` raises the error of a cell in backquotes, or returns what is shown as the rest of the cell."""
    if expected.startswith("`"):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the page says which
            run()
        assert type(caught.value).__name__ == expected.strip("`")
    else:
        assert show(run()) == expected


def test_native_operators_do_what_their_page_shows(backend: Backend) -> None:
    table = engine_table(OPERATORS)
    native = lambda dtype: ops.asarray([1, 2], dtype=dtype)  # noqa: E731
    for name, run in OPERATORS.items():
        dtype, _, _ = table[backend.name][name].partition(",")
        assert_does(dtype, partial(run, native), lambda x: ops.dtype(x).name)
        ours = table["`ops` and embertensor"][name]
        assert_does(ours, partial(run, lambda dtype: EmberTensor(native(dtype))), lambda x: x.dtype.name)


def test_indexing_does_what_its_page_shows(backend: Backend) -> None:
    table = engine_table(INDEXING)
    native = ops.asarray([1, 2, 3])
    show = lambda x: ", ".join(map(str, np.ravel(ops.to_numpy(x)).tolist()))  # noqa: E731
    for name, run in INDEXING.items():
        assert_does(table["embertensor"][name], partial(run, EmberTensor(native)), show)
        if "other memory" in table[backend.name][name]:
            assert backend.name == "mlx"
        else:
            assert_does(table[backend.name][name], partial(run, native), show)
