"""Gradient rules of primitive operations, written in terms of operations, one file per category.

They serve engines without gradients: NumPy always, MLX for matrix decompositions. Because a rule consists of
operations, it can be differentiated again. Complex cotangents are pulled back without conjugation.

A category's file may hold

- ``RULES``: from a name to one function per positional parameter (``None``: no gradient), or to a dictionary of
  functions by position or name. Each takes the cotangent, the result and all arguments. Axes added by broadcasting
  are summed afterwards.
- ``JOINT``: from a name to one function for all arguments. It takes the places whose gradient is required, then the
  same arguments as above, and returns one gradient for each place.
- ``FORMULAS``: from a name to a function of the same arguments, whose gradient is used.
- ``MOVES``: names of operations that only move elements; the gradient moves them back.
"""

from __future__ import annotations

import importlib
import math as _math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

# Private aliases, because modules of this package have the same names.
from ember_ml.ops import creation as _creation
from ember_ml.ops import dtypes as _dtypes
from ember_ml.ops import indexing as _indexing
from ember_ml.ops import manipulation as _manipulation
from ember_ml.ops import math as _elements
from ember_ml.ops import stats as _stats
from ember_ml.transform import vjp as _vjp

if TYPE_CHECKING:
    from ember_ml.dispatch import Operation

# Function from the places whose gradient is required, the cotangent, the result and the arguments to one gradient for
# each place. A place is a position, a name, or a pair of a place and an index into the sequence there.
Rule: TypeAlias = Callable[[Sequence[Any], Any, Any, Sequence[Any], dict[str, Any]], Sequence[Any]]


def rule_of(operation: Operation) -> Rule | None:
    """Rule for an operation, or ``None``."""
    if not operation.module.startswith("ember_ml.ops."):
        return None
    try:
        module = importlib.import_module(f"ember_ml.gradients.{operation.category}")
    except ModuleNotFoundError as error:
        if error.name != f"ember_ml.gradients.{operation.category}":
            raise
        return None
    name = operation.name
    for kind, make in (("RULES", _separate), ("JOINT", _joint), ("FORMULAS", by_formula)):
        table = getattr(module, kind, {})
        if name in table:
            return make(table[name])
    return _by_moving(operation) if name in getattr(module, "MOVES", ()) else None


def _separate(functions: Any) -> Rule:
    """Rule from one function per argument."""
    by_place = functions if isinstance(functions, dict) else dict(enumerate(functions))

    def rule(places: Sequence[Any], g: Any, result: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        found = []
        for place in places:
            x = args[place] if type(place) is int else kwargs[place]
            function = by_place.get(place)
            found.append(zeros_like(x) if function is None else fitted(function(g, result, *args, **kwargs), x))
        return found

    rule.by_place = by_place  # type: ignore[attr-defined]
    return rule


def _joint(function: Callable[..., Any]) -> Rule:
    def rule(places: Sequence[Any], g: Any, result: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        found = function(places, g, result, *args, **kwargs)
        return [fitted(one, at(args, kwargs, place)) for one, place in zip(found, places, strict=True)]

    return rule


def by_formula(formula: Callable[..., Any]) -> Rule:
    """Rule that differentiates a function with the same arguments and result."""

    def rule(places: Sequence[Any], g: Any, result: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
        def run(*xs: Any) -> Any:
            changed: list[Any] = [list(one) if isinstance(one, tuple) else one for one in args]
            named = dict(kwargs)
            for place, x in zip(places, xs, strict=True):
                if isinstance(place, tuple):
                    changed[place[0]][place[1]] = x
                elif type(place) is int:
                    changed[place] = x
                else:
                    named[place] = x
            result = formula(*changed, **named)
            return list(result) if isinstance(result, tuple) else result

        xs = [at(args, kwargs, place) for place in places]
        results, pull = _vjp(run, *xs)
        # Transforms conjugate complex gradients, rules do not.
        if isinstance(results, list):
            g = [zeros_like(y) if one is None else conjugate(one) for one, y in zip(g, results, strict=True)]
        else:
            g = conjugate(g)
        return [conjugate(one) for one in pull(g)]

    return rule


def _by_moving(operation: Operation) -> Rule:
    return _separate((lambda g, result, *args, **kwargs: moved_back(operation.call, g, *args, **kwargs),))


def moved_back(move: Callable[..., Any], g: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Zeros like ``x`` with the elements of ``g`` added at their positions before ``move``."""
    shape = tuple(x.shape)
    size = _math.prod(shape)
    # Zero marks elements without a source, such as padding.
    sources = move(_manipulation.reshape(_creation.arange(1, size + 1), shape), *args, **kwargs)
    if isinstance(sources, (list, tuple)):
        kept = [(one, source) for one, source in zip(g, sources, strict=True) if one is not None]
        g = _manipulation.concat([_manipulation.ravel(one) for one, _ in kept])
        sources = _manipulation.concat([_manipulation.ravel(source) for _, source in kept])
    summed = _indexing.segment_sum(_manipulation.ravel(g), _manipulation.ravel(sources), size + 1)
    return _manipulation.reshape(summed[1:], shape)


def at(args: Sequence[Any], kwargs: dict[str, Any], place: Any) -> Any:
    """Argument at a place."""
    if isinstance(place, tuple):
        return at(args, kwargs, place[0])[place[1]]
    return args[place] if type(place) is int else kwargs[place]


def is_floating(x: Any) -> bool:
    """Whether a NumPy array can have a gradient; bfloat16 has the dtype kind "V"."""
    dtype = getattr(x, "dtype", None)
    return dtype is not None and dtype.kind in "fcV"


def conjugate(x: Any) -> Any:
    """``x``, conjugated if it is complex."""
    return _elements.conj(x) if _dtypes.is_complex(x) else x


def zeros_like(x: Any) -> Any:
    """Zero gradient for ``x``."""
    return _creation.zeros_like(x)


def fitted(g: Any, x: Any) -> Any:
    """``g`` as a gradient for ``x``: summed over broadcast axes and cast to the dtype of ``x``."""
    if g.shape != x.shape:
        g = _sum_broadcast(g, tuple(x.shape))
    if g.dtype is not x.dtype and g.dtype != x.dtype:
        if _dtypes.is_complex(g) and not _dtypes.is_complex(x):
            g = _elements.real(g)
        g = _dtypes.cast(g, x.dtype, copy=False)
    return g


def _sum_broadcast(g: Any, shape: tuple[int, ...]) -> Any:
    old = tuple(g.shape)
    extra = len(old) - len(shape)
    if extra < 0:
        return _manipulation.broadcast_to(g, shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and old[i + extra] != 1)
    if axes:
        g = _stats.sum(g, axis=axes, dtype=g.dtype)
    if tuple(g.shape) == shape:
        return g
    return (
        _manipulation.reshape(g, shape)
        if _math.prod(g.shape) == _math.prod(shape)
        else _manipulation.broadcast_to(g, shape)
    )
