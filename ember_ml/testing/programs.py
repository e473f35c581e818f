"""Many calls as one program, for engines that compile every call: compiling one program for each would take minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from ember_ml import backend as backends
from ember_ml.backend import Backend

Attempt: TypeAlias = Callable[[], Any]
"""Function that returns the result of a call, or raises its error."""

Job: TypeAlias = tuple[Callable[..., Any], Sequence[Any]]
"""Function of tensors, and the tensors to call it with."""

_UNTRACED = object()


def attempts(backend: Backend, jobs: Sequence[Job]) -> list[Attempt]:
    """An attempt for each job.

    An engine that compiles operations computes all jobs at once. Those that it cannot trace, because they read values
    or raise an error, are computed when they are attempted, as on the other engines.
    """
    if not backend.compiles_operations:
        return [partial(f, *tensors) for f, tensors in jobs]
    results = _computed(backend, jobs)
    return [
        partial(f, *tensors) if result is _UNTRACED else partial(_identity, result)
        for (f, tensors), result in zip(jobs, results, strict=True)
    ]


def _computed(backend: Backend, jobs: Sequence[Job]) -> list[Any]:
    """Results of the jobs, with a mark for each that cannot be traced."""

    def program(*tensors: Any) -> list[Any]:
        rest = iter(tensors)
        return [_traced(f, [next(rest) for _ in given]) for f, given in jobs]

    compiled = transforms(backend).whole(program)
    found: list[Any] = compiled(*(tensor for _, given in jobs for tensor in given))
    return found


def _traced(f: Callable[..., Any], tensors: list[Any]) -> Any:
    try:
        return f(*tensors)
    except Exception:
        # The attempt raises it again, or succeeds with the values that a trace does not have.
        return _UNTRACED


def _identity(result: Any) -> Any:
    return result


def transforms(backend: Backend) -> Any:
    """Module with the transforms of the engine; ``None`` if there is none."""
    return backends.submodule(backend.module, "transform")
