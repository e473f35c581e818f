"""The page of every rule: its example is reported, and the code to use instead is not, and runs on every engine.

Each block is a complete file. The line before it ends with its name, "`mypackage/ops/math.py`:"; without a name, the
file is ``example.py``. Settings that the example shows, and other files that are not Python, apply to both.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.errors import UnsupportedError
from emberlint import config as configuration
from emberlint import rules
from emberlint.codes import rule_modules
from emberlint.config import ENGINES
from emberlint.lint import runner

BLOCK = re.compile(r"(?:`([\w./-]+\.(?:json|py|toml))`:\n+)?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Examples that do not have the results of the code to use instead, and how that shows.
DIFFERENT: dict[str, type[Exception]] = {
    "EMB001": SyntaxError,  # Python cannot parse it
    "EMB204": ValueError,  # an array of three elements has no truth value
    "EMB312": AssertionError,  # the numbers are random
    "EMB403": UnsupportedError,  # only torch accepts the keyword
}

every_rule = pytest.mark.parametrize("code", list(rule_modules()))


def example(code: str) -> dict[str, str]:
    """Files of the example, by their names."""
    return files_below("Example", code)


def instead(code: str) -> dict[str, str]:
    """Files to use instead, by their names."""
    settings = {name: text for name, text in example(code).items() if not name.endswith(".py")}
    return settings | files_below("Use instead", code)


def files_below(heading: str, code: str) -> dict[str, str]:
    """Files that the page of a rule shows below a heading, by their names."""
    _, *parts = re.split(r"^## (.+)$", rules.load(code).page, flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    blocks = BLOCK.findall(sections[heading])
    files = {name or "example.py": text for name, text in blocks}
    assert len(files) == len(blocks) > 0, f"{heading}: blocks must be different files, got {[n for n, _ in blocks]}"
    return files


def write(files: dict[str, str], folder: Path) -> None:
    """Write files into a folder, in which all folders are packages."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        for parent in Path(name).parents[:-1]:
            (folder / parent / "__init__.py").touch()


def is_reported(code: str, files: dict[str, str], folder: Path) -> bool:
    """Whether a rule reports one of the files, when it runs with all rules that are on by default."""
    write(files, folder)
    config = configuration.load(str(folder))._replace(select=("EMB", code))
    run = runner.run([str(folder)], config, jobs=1, cached=False)
    assert run.files
    return any(finding.code == code for finding in run.findings)


def results_of(files: dict[str, str], folder: Path) -> dict[str, Any]:
    """Import the files and call their functions; results by the functions' names."""
    write(files, folder)
    modules = [name.removesuffix(".py").removesuffix("/__init__") for name in files if name.endswith(".py")]
    with importable(folder):
        functions = [f for name in modules for f in functions_of(importlib.import_module(name.replace("/", ".")))]
        return {function.__name__: result_of(function) for function in functions}


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Within the block, modules of a folder can be imported; they are forgotten after it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        try:
            yield
        finally:
            for name, module in list(sys.modules.items()):
                if (getattr(module, "__file__", None) or "").startswith(str(folder)):
                    del sys.modules[name]


def functions_of(module: ModuleType) -> list[Callable[..., Any]]:
    """Functions that a module defines."""
    return [f for f in vars(module).values() if inspect.isfunction(f) and f.__module__ == module.__name__]


def result_of(function: Callable[..., Any]) -> Any:
    """Result of a call with arguments for the required parameters; a list of numbers for a tensor."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    result = function(*(argument_for(p.annotation) for p in parameters if p.default is p.empty))
    return result.tolist() if hasattr(result, "tolist") else result


def argument_for(annotation: Any) -> Any:
    """A number, or a tensor: of the engine that the annotation names, or else of the active backend."""
    if annotation in (bool, int, float):
        return annotation(2)
    engine = getattr(annotation, "__module__", "").partition(".")[0]
    with ember_ml.use_backend(engine if engine in ENGINES else ember_ml.get_backend()):
        return ops.convert_to_tensor([0.25, 0.5, 2.0])


@every_rule
def test_the_example_is_reported(code: str, tmp_path: Path) -> None:
    assert is_reported(code, example(code), tmp_path)


@every_rule
def test_the_code_to_use_instead_is_not_reported(code: str, tmp_path: Path) -> None:
    assert not is_reported(code, instead(code), tmp_path)


@every_rule
def test_the_code_to_use_instead_runs(code: str, tmp_path: Path, backend: Backend) -> None:
    results_of(instead(code), tmp_path)


@every_rule
def test_the_code_to_use_instead_has_the_results_of_the_example(code: str, tmp_path: Path) -> None:
    with ember_ml.use_backend("numpy"):
        found = results_of(instead(code), tmp_path / "instead")
        with pytest.raises(DIFFERENT[code]) if code in DIFFERENT else nullcontext():
            expected = results_of(example(code), tmp_path / "example")
            assert found == {name: pytest.approx(value) for name, value in expected.items()}


def test_the_different_examples_are_rules() -> None:
    assert DIFFERENT.keys() <= rule_modules().keys()
