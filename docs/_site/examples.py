"""Results of the examples of docstrings on every installed engine.

``python -m _site.examples ENGINE`` runs all of them in one process, and prints a JSON object. The results are kept in a
file whose name depends on the sources of the library and on the version of the engine.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any

import ember_ml
from _site import ROOT
from ember_ml import backend as backends
from ember_ml.errors import MissingOperationError, UnsupportedError
from ember_ml.tools import measuring
from emberlint import atomic

# From a document to its examples: pairs of source and output.
Sessions = dict[str, list[tuple[str, str]]]

# Longer tensors are shown as the docstring shows them.
_MOST_LINES = 12


def sessions(cache: Path) -> dict[str, Sessions]:
    """Sessions of all examples by engine, for the engines that are installed."""
    found = {}
    for engine in [name for name in backends.OWN if name in ember_ml.get_available_backends()]:
        path = cache / f"examples-{engine}-{_fingerprint(engine)}.json"
        if not path.exists():
            for old in cache.glob(f"examples-{engine}-*.json"):
                old.unlink()
            atomic.write(path, _run_in_process(engine), parents=True)
        found[engine] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _fingerprint(engine: str) -> str:
    """Hash of everything that results depend on."""
    digest = hashlib.sha256(json.dumps(measuring.versions([engine])).encode())
    own = [Path(__file__), Path(__file__).with_name("inventory.py")]
    for path in [*sorted(ROOT.glob("ember_ml/**/*.py")), *own]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _run_in_process(engine: str) -> str:
    """JSON of the sessions on an engine, run in a separate process in an empty folder."""
    paths = [str(ROOT / "docs"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    variables = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "_site.examples", engine],
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"the examples must run on {engine}, got an error:\n{done.stderr}")
    return done.stdout


def run(engine: str, docnames: Collection[str] | None = None) -> Sessions:
    """Sessions of the examples of these documents, or of all, on an engine, in this process."""
    from _site import inventory  # imports every part of the library, which the results of other processes do not need

    ember_ml.set_backend(engine)
    found = inventory.examples()
    return {name: _session(engine, *item) for name, item in found.items() if docnames is None or name in docnames}


def _session(engine: str, docstring: str, names: dict[str, Any]) -> list[tuple[str, str]]:
    ember_ml.set_backend(engine)
    ember_ml.ops.set_default_dtype("float32")
    ember_ml.ops.random.set_seed(0)
    # Compilers look for the module of a function.
    module = ModuleType("example")
    vars(module).update({name: value for name, value in names.items() if not name.startswith("__")})
    sys.modules["example"] = module
    found = []
    for example in doctest.DocTestParser().get_examples(docstring):
        expression = shown_tensor(example.source)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            try:
                found.append(_run(example.source, expression, vars(module)) or (example.source, printed.getvalue()))
            except Exception as error:
                if example.exc_msg is None and not isinstance(error, (MissingOperationError, UnsupportedError)):
                    raise
                message = "".join(traceback.format_exception_only(error)).partition("\n")[0]
                found.append((example.source, f"Traceback (most recent call last):\n    ...\n{message}\n"))
    return found


def _run(source: str, expression: str, names: dict[str, Any]) -> tuple[str, str] | None:
    """Expression and its value, if it is short; else ``None``, and the example has printed its result."""
    if expression:
        # Evaluated once, as it may draw random numbers.
        value = names["_value"] = eval(compile(expression, "<example>", "eval"), names)
        text = repr(value)
        if text.count("\n") < _MOST_LINES:
            return f"{expression}\n", f"{text}\n"
        source = source.replace(expression, "_value", 1)
    exec(compile(source, "<example>", "single"), names)
    return None


def shown_tensor(source: str) -> str:
    """Tensor whose elements or shape an example shows, as an expression; empty if it shows something else.

    >>> shown_tensor("add([1, 2], 3).tolist()")
    'add([1, 2], 3)'
    >>> shown_tensor("[round(y, 2) for y in exp([1.0, 2.0]).tolist()]")
    'exp([1.0, 2.0])'
    >>> shown_tensor("tuple(layer(x).shape)")
    'layer(x)'
    """
    (statement, *others) = ast.parse(source).body
    value = statement.value if isinstance(statement, ast.Expr) and not others else None
    if isinstance(value, ast.ListComp) and len(value.generators) == 1:
        value = value.generators[0].iter
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "tolist":
        return str(ast.get_source_segment(source, value.func.value))
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "tuple" and len(value.args) == 1:
        (shape,) = value.args
        if isinstance(shape, ast.Attribute) and shape.attr == "shape":
            return str(ast.get_source_segment(source, shape.value))
    return ""


if __name__ == "__main__":
    json.dump(run(sys.argv[1]), sys.stdout)
