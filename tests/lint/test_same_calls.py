"""Ported calls of every function that a guide lists compute what the call of the engine does, but for its remarks."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.extend import is_tensor
from ember_ml.testing import samples
from emberlint.commands import port
from emberlint.config import Config
from emberlint.knowledge import catalogue
from emberlint.rewrite import guides
from emberlint.rewrite.names import difference, operation_for

IMPORTS = {
    "jax": ("jax", "jax.lax", "jax.nn", "jax.numpy", "jax.scipy.special"),
    "numpy": ("numpy",),
    "torch": ("torch", "torch.nn.functional"),
}
# Their results are random, or files.
LEFT_OUT = ("io", "random")
# Differences that are not of the call: how engines round, and what they are not made for.
KNOWN = {
    "numpy.arange": "NumPy rounds the step to the integer dtype",
    "numpy.cumprod": "NumPy adds an axis to a 0-d array",
    "numpy.cumsum": "NumPy adds an axis to a 0-d array",
    "numpy.cumulative_prod": "NumPy adds an axis to a 0-d array",
    "numpy.cumulative_sum": "NumPy adds an axis to a 0-d array",
    "numpy.iscomplexobj": "the samples are names of dtypes, which NumPy takes for texts",
    "numpy.nanpercentile": "NumPy drops the axis of q where there are no rows",
    "numpy.nanquantile": "NumPy drops the axis of q where there are no rows",
    "torch.cosine_similarity": "torch broadcasts before it takes the axis",
    "torch.nn.functional.cosine_similarity": "torch broadcasts before it takes the axis",
    "torch.allclose": "torch rounds the tolerance to the dtype of integers",
    "torch.isclose": "torch rounds the tolerance to the dtype of integers",
}
# torch has them only to say that they were removed.
REMOVED = ("torch.eig", "torch.lstsq", "torch.matrix_rank", "torch.solve")


class Ported(NamedTuple):
    """A function with the arguments of a sample, which calls the engine, and what the port made of it."""

    native: Callable[..., Any]
    ported: Callable[..., Any]
    is_changed: bool


def paths(engine: str) -> list[str]:
    """Functions of an engine for which there is an operation, and no remark that it means something else."""
    return [
        path
        for path in catalogue.load()["engines"][engine]["functions"]
        if operation_for(path) and not difference(path) and path not in REMOVED
    ]


def operation_of(path: str) -> Operation | None:
    """Operation that a function is ported to."""
    found: Any = ops
    for part in operation_for(path).split("."):
        found = getattr(found, part, None)
    return next((operation for operation in REGISTRY.values() if operation.call is found), None)


def calls(path: str) -> list[samples.Call]:
    """Samples of the operation with finite numbers of usual dtypes."""
    operation = operation_of(path)
    if operation is None or operation.category in LEFT_OUT:
        return []
    return [call for call in samples.calls(operation) if all(map(_is_usual, _arrays(call))) and not _reduces_none(call)]


def _arrays(call: samples.Call) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    call.map(lambda array: found.append(array))
    return found


def _is_usual(array: np.ndarray) -> bool:
    return array.dtype.name not in ("bfloat16", "float16") and bool(np.all(np.isfinite(array)))


def _reduces_none(call: samples.Call) -> bool:
    """Whether it is along no axis, which torch takes for all."""
    return call.kwargs.get("axis") == ()


def _form(call: samples.Call) -> tuple[int, tuple[str, ...]]:
    return len(call.args), tuple(call.kwargs)


@cache
def programs(engine: str) -> dict[tuple[str, int, tuple[str, ...]], Ported]:
    """All forms of calls of all functions, ported as one file."""
    forms = list(dict.fromkeys((path, *_form(call)) for path in paths(engine) for call in calls(path)))
    lines = [f"import {name}" for name in IMPORTS[engine]]
    for number, (path, count, keywords) in enumerate(forms):
        places = [f"a{i}" for i in range(count)]
        given = ", ".join([*places, *(f"{keyword}={keyword}" for keyword in keywords)])
        lines.append(f"def f{number}({', '.join([*places, *keywords])}):\n    return {path}({given})")
    before = "\n".join(lines) + "\n"
    after = port.ported(before.encode(), "program.py", engine, Config()).after.decode()
    (native, bodies), (ported, ported_bodies) = _executed(before), _executed(after)
    return {
        form: Ported(native[name], ported[name], bodies[name] != ported_bodies[name])
        for form, name in ((form, f"f{number}") for number, form in enumerate(forms))
    }


def _executed(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Names that a program defines, and the text of its functions."""
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)
    return names, {node.name: ast.unparse(node) for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _leaves(one)
    else:
        yield ops.to_numpy(value) if is_tensor(value) or isinstance(value, np.ndarray | np.generic) else value


def _is_same(ours: Any, theirs: Any) -> bool:
    mine, native = list(_leaves(ours)), list(_leaves(theirs))
    return len(mine) == len(native) and all(map(_are_close, mine, native))


def _are_close(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype.kind in "biufc":
        return a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-4)
    return bool(np.all(a == b))


def _divides_by_zero(path: str, call: samples.Call) -> bool:
    """Whether torch ends the process: integers divided by zero."""
    name = path.rpartition(".")[2]
    is_integer = any(array.dtype.kind in "iu" for array in _arrays(call))
    return is_integer and name in ("floor_divide", "fmod", "gcd", "lcm", "remainder")


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_ported_calls_compute_the_same(engine: str) -> None:
    """What is neither the same nor in a remark of the guides is a call that a port breaks in silence."""
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    wrong, compared, differing = [], 0, set()
    with ember_ml.use_backend(engine, device="cpu"):
        for path in paths(engine):
            for call in calls(path):
                program = programs(engine)[path, *_form(call)]
                if not program.is_changed or (engine == "torch" and _divides_by_zero(path, call)):
                    continue
                native = call.map(lambda array: ops.asarray(array.copy()))
                try:
                    theirs = program.native(*native.args, **native.kwargs)
                except Exception:
                    continue  # the engine does not take the options of this sample
                compared += 1
                try:
                    ours = program.ported(*native.args, **native.kwargs)
                except (TypeError, ValueError) as error:
                    ours = error
                if not _is_same(ours, theirs):
                    differing.add(path)
                    if path not in guides.REMARKS and path not in KNOWN:
                        wrong.append(f"{call.text(path)}: {ours} where {engine} has {theirs}")
    assert wrong == []
    assert compared > 1000
    assert [path for path in KNOWN if path.startswith(engine) and path not in differing] == []
