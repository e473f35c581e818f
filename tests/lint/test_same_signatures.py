"""Functions that a guide lists with the same call take the same arguments: names, order and defaults of parameters.

The signatures are those of the installed libraries. Where a guide shows a function with what differs, that text names
every parameter that differs.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from inspect import Parameter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ember_ml import ops
from emberlint.generate import documented_heads, documented_parameters
from emberlint.knowledge import catalogue
from emberlint.rewrite import guides
from emberlint.rewrite.names import operation_for

ENGINES = ("numpy", "torch", "jax")
DOCS = Path(__file__).parents[2] / "docs"
PLACES = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
KINDS = {
    "P": Parameter.POSITIONAL_ONLY,
    "B": Parameter.POSITIONAL_OR_KEYWORD,
    "V": Parameter.VAR_POSITIONAL,
    "K": Parameter.KEYWORD_ONLY,
    "W": Parameter.VAR_KEYWORD,
}
TENSORS = ("TensorLike", "Indices", "Mask", "object", "complex")
# Defaults that differ in name alone, by the option or by the function and the option.
SAME_DEFAULTS = {
    "axisa": "None is axis=, whose default is -1",
    "axisb": "None is axis=, whose default is -1",
    "axisc": "None is axis=, whose default is -1",
    "cross.axis": "None is axisa=, axisb= and axisc=, whose defaults are -1",
    "cov.correction": "None is ddof=, and 1 without it",
    "dtype": "None is the default float, which NumPy calls float",
    "edge_order": "None is 1",
    "einsum.optimize": "the order of the products changes no result but by rounding",
    "jax.numpy.arange.step": "None is 1",
    "jax.numpy.astype.copy": "JAX's arrays are never changed",
    "jax.numpy.take.mode": "the page says what an index out of bounds does",
    "numpy.permute_dims.axes": "the standard requires it; without it, transpose reverses the axes",
    "torch.trapezoid.dx": "None is 1",
    "searchsorted.side": "None is 'left' without right=True",
    "vecdot.axis": "without it, the last axis",
    "torch.arange.start": "one argument is the stop",
    "sort.stable": "equal numbers are the same in any order",
}
# Functions of separate arguments for which the operation has no ``*``.
VARIADIC = {
    "jax.numpy.array": "JAX takes no further arguments by position",
    "torch.empty": "operations take the lengths of axes one by one too",
    "torch.ones": "operations take the lengths of axes one by one too",
    "torch.zeros": "operations take the lengths of axes one by one too",
}


class Row(NamedTuple):
    """A function that a guide lists: its full name, the name of its operation, what the guide says that differs."""

    path: str
    operation: str
    remark: str


def rows(engine: str) -> list[Row]:
    """Functions of an engine that have an operation, except draws, whose row says that the shape comes first."""
    return [
        Row(path, operation_for(path), guides.remark(path))
        for path in guides.ported(engine)
        if not path.startswith(f"{engine}.random.")
    ]


def signatures(path: str) -> list[list[Parameter]]:
    """Signatures of a function of an installed library; several where torch documents several."""
    module, _, name = path.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    try:
        return [list(inspect.signature(function).parameters.values())]
    except (TypeError, ValueError):
        pass
    heads = documented_heads(function, name)
    return [_documented(head) for head in heads] if heads else _schemas(name)


def _documented(head: str) -> list[Parameter]:
    found = []
    for name, kind, default in documented_parameters(head):
        known = {"inf": float("inf"), "None": None, "True": True, "False": False}
        value = Parameter.empty if default is None else eval(default, {}, known) if _is_literal(default) else default
        found.append(Parameter(str(name), KINDS[str(kind)], default=value))
    return found


def _is_literal(text: str) -> bool:
    return bool(re.fullmatch(r"None|True|False|inf|-?[\d.]+(e-?\d+)?|'\w*'|\"\w*\"|\(.*\)|\[.*\]", text))


def _schemas(name: str) -> list[list[Parameter]]:
    """Signatures of a function of torch that has no documentation."""
    import torch

    found = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        if "out" in schema.overload_name or "name" in schema.overload_name.lower():
            continue
        found.append(
            [
                Parameter(
                    "input" if one.name == "self" else one.name,
                    Parameter.KEYWORD_ONLY if one.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD,
                    default=one.default_value if one.has_default_value() else Parameter.empty,
                )
                for one in schema.arguments
            ]
        )
    return found


def differences(row: Row, theirs: list[Parameter]) -> Iterator[str]:
    """Names of the parameters of a function that its operation does not have in the same place, by the same name."""
    function: Any = ops
    for part in row.operation.split("."):
        function = getattr(function, part)
    ours = inspect.signature(function).parameters
    places = [one for one in ours.values() if one.kind in PLACES]
    variadic = any(one.kind is Parameter.VAR_POSITIONAL for one in ours.values())
    refused = guides.REFUSED["all"] | guides.REFUSED[row.path.partition(".")[0]]
    is_ordered = True
    for place, their in enumerate(theirs):
        own = ours.get(their.name)
        if own is not None and own.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            own = None
        at = places[place] if place < len(places) and their.kind in PLACES else None
        if their.name.startswith("_") or their.kind is Parameter.VAR_KEYWORD:
            continue
        if own is None and (their.name in refused or (their.name == "dtype" and _has_casting(theirs))):
            is_ordered = False
        elif their.kind is Parameter.VAR_POSITIONAL:
            if not variadic and row.path not in VARIADIC and not guides.is_function_object(row.path):
                yield their.name
        elif their.kind is Parameter.POSITIONAL_ONLY or (their.default is Parameter.empty and their.kind in PLACES):
            if not _is_argument(their, own, at, theirs, variadic):
                yield their.name
        else:
            is_moved = their.kind in PLACES and is_ordered and own is not at
            if own is None or is_moved or not _is_same_default(row.path, their, own):
                yield their.name
    if not any(one.kind is Parameter.VAR_POSITIONAL for one in theirs):
        given = {one.name for one in theirs}
        count = sum(one.kind in PLACES for one in theirs)
        for place, own in enumerate(ours.values()):
            is_given = own.name in given or (own.kind in PLACES and place < count)
            if own.default is Parameter.empty and not is_given and own.kind in (*PLACES, Parameter.KEYWORD_ONLY):
                yield own.name


def _has_casting(theirs: list[Parameter]) -> bool:
    """Whether the dtype is one of the options for storage."""
    return any(one.name == "casting" for one in theirs)


def _is_argument(
    their: Parameter, own: Parameter | None, at: Parameter | None, theirs: list[Parameter], variadic: bool
) -> bool:
    """Whether the operation takes an argument that has no name, or is required, at the same place."""
    if at is None:
        return variadic
    if at.name == their.name:
        return True
    is_tensor = at.kind is Parameter.POSITIONAL_ONLY or str(at.annotation).strip("'") in TENSORS
    if own is not None or any(at.name == one.name for one in theirs):
        return False
    return is_tensor or their.kind is Parameter.POSITIONAL_ONLY


def _is_same_default(path: str, their: Parameter, own: Parameter) -> bool:
    """Whether two defaults are equal, where an option that is not given may also be False, zero or the usual norm."""
    one, other = _default(their.default), _default(own.default)
    if one == other or (None in (one, other) and {one, other} <= {None, False, "backward"}):
        return True
    name = path.rpartition(".")[2]
    return any(f"{place}{their.name}" in SAME_DEFAULTS for place in ("", f"{name}.", f"{path}."))


def _default(value: object) -> Any:
    """A default; None for ``<no value>``, which says that the option is not given."""
    return None if str(value) == "<no value>" else value


@pytest.mark.parametrize("engine", ENGINES)
def test_functions_of_the_same_call_have_the_same_parameters(engine: str) -> None:
    pytest.importorskip(engine)
    found = {}
    for row in rows(engine):
        if not row.remark:
            theirs = signatures(row.path)
            names = sorted({name for one in theirs for name in differences(row, one)})
            if names or not theirs:
                found[row.path] = names
    assert found == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_differs_is_named(engine: str) -> None:
    pytest.importorskip(engine)
    found = {}
    for row in rows(engine):
        if row.remark:
            names = sorted({name for one in signatures(row.path) for name in differences(row, one)})
            missing = [name for name in names if not re.search(rf"\b{name}\b", row.remark)]
            if missing:
                found[row.path] = (row.remark, missing)
    assert found == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_options_of_no_operation_are_on_the_page(engine: str) -> None:
    page = (DOCS / f"from_{engine}.md").read_text(encoding="utf-8")
    names = guides.REFUSED["all"] | guides.REFUSED[engine]
    in_engine = {one.name for path in guides.ported(engine) for one in _parameters(path)}
    assert sorted(name for name in names & in_engine if f"`{name}=`" not in page) == []


def _parameters(path: str) -> list[catalogue.Parameter]:
    return catalogue.parameters(catalogue.function(path) or {}) or []


def test_reasons_for_defaults_are_needed() -> None:
    """An entry of ``SAME_DEFAULTS`` without a function that has such a default is removed."""
    reasons = dict(SAME_DEFAULTS)
    used: set[str] = set()
    SAME_DEFAULTS.clear()
    try:
        for engine in ENGINES:
            pytest.importorskip(engine)
            for row in rows(engine):
                name = row.path.rpartition(".")[2]
                for one in (found for theirs in signatures(row.path) for found in differences(row, theirs)):
                    used |= {one, f"{name}.{one}", f"{row.path}.{one}"}
    finally:
        SAME_DEFAULTS.update(reasons)
    assert sorted(set(reasons) - used) == []
