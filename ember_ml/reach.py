"""What a function reaches without being given it: models and tensors that it closes over, or knows by a global name.

Engines that run a function later, or compile it, know of what they are given alone; so this is given to it as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any

from ember_ml import door, tree
from ember_ml.backend import Backend


def is_stateful(leaf: Any) -> bool:
    """Whether ``leaf`` is a ``Stateful``: a look at the methods, which costs less than ``isinstance``."""
    kind = type(leaf)
    return hasattr(kind, "tensors") and hasattr(kind, "assign")


def is_tensor(leaf: Any) -> bool:
    """Whether ``leaf`` is a tensor of an engine, or a host array."""
    species = door.species_of(type(leaf))
    return isinstance(species, Backend) or (species == door.HOST and hasattr(leaf, "dtype"))


def reached(f: Any, arguments: Any, home: Backend) -> tuple[list[Any], list[Any]]:
    """The models that a function reaches without being given them, and the cells of its closure that hold tensors.

    What is of another engine is left alone: nothing flows through it.
    """
    models: list[Any] = []
    cells: list[Any] = []
    rest, seen = [f], {id(leaf) for leaf in tree.leaves(arguments) if is_stateful(leaf)}
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_stateful(value):
            if all(_lives(x, home) for x in value.tensors().values()):
                models.append(value)
        elif isinstance(value, (dict, list, tuple)):
            rest += [leaf for leaf in tree.leaves(value) if callable(leaf) or is_stateful(leaf)]
        elif isinstance(value, partial):
            rest += [value.func, value.args, value.keywords]
        elif callable(value):
            rest += [part for part in (getattr(value, "__self__", None), getattr(value, "__func__", None)) if part]
            rest += [found for found in _named_by(value) if is_stateful(found)]
            for cell in getattr(value, "__closure__", None) or ():
                # One is empty while what it is for is being made.
                content = cell.cell_contents if cell is not None and _is_filled(cell) else None
                if not is_tensor(content):
                    rest.append(content)
                elif _lives(content, home):
                    cells.append(cell)
    return models, cells


def _lives(x: Any, home: Backend) -> bool:
    """Whether a tensor is an engine's own; host arrays are NumPy's, traced or not."""
    species = door.species_of(type(x))
    return species is home or (species == door.HOST and home.name in ("numpy", "autograd"))


def _named_by(f: Any) -> list[Any]:
    """The values of the global names in a function, and in those that are written in it."""
    scope = getattr(f, "__globals__", {})
    codes = [f.__code__] if scope else []
    for code in codes:
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    return [scope[name] for code in codes for name in code.co_names if name in scope]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - it is asked for whether there is one
    except ValueError:
        return False
    return True


def given(f: Callable[..., Any], cells: list[Any]) -> Callable[..., Any]:
    """``f``, given what it reaches as well, so that an engine knows of it: tensors go to the cells they came from."""

    def run(held: Any, *args: Any) -> Any:
        before = [cell.cell_contents for cell in cells]
        for cell, content in zip(cells, held[1], strict=True):
            cell.cell_contents = content
        try:
            return f(*args)
        finally:
            for cell, content in zip(cells, before, strict=True):
                cell.cell_contents = content

    return run
