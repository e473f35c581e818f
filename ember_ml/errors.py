"""Exceptions and warnings of Ember ML; each is also the built-in exception that users would catch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


class EmberError(Exception):
    """Base class of all exceptions that Ember ML defines."""


class BackendNotFoundError(EmberError, ImportError, ValueError):
    """A backend is unknown, not installed, or fails to import."""


class DeviceNotFoundError(EmberError, ValueError):
    """An engine does not have the device that was chosen as its default."""


class MissingOperationError(EmberError, NotImplementedError):
    """A backend does not implement an operation."""


class UnsupportedError(EmberError, TypeError):
    """An engine or device does not support a dtype or a combination of arguments."""


class AxisError(EmberError, ValueError, IndexError):
    """A tensor does not have the given axis."""


class LinAlgError(EmberError, ValueError):
    """A matrix is singular or not positive definite, or its decomposition does not converge."""


class ForkError(EmberError, RuntimeError):
    """A backend cannot compute in this process, which was forked from one that had used it."""


class DistributedError(EmberError, RuntimeError):
    """Ranks do not agree on a collective operation, or cannot reach each other."""


class PrecisionWarning(UserWarning):
    """Data was converted to a narrower dtype because the device does not support the wider one."""


def axis_error(axis: int, ndim: int, name: str = "axis", of: str = "tensor") -> AxisError:
    """The error for an axis that a tensor, or a result, with ``ndim`` axes does not have."""
    if ndim:
        return AxisError(f"{name} must be from {-ndim} to {ndim - 1} for a {ndim}-d {of}, got {axis}")
    return AxisError(f"{name} must not be given for a 0-d {of}, got {axis}")


def read_error(error: Exception) -> TypeError:
    """The error for a compiled function that reads values of its tensors, from the first line of the engine's."""
    return TypeError(
        "compile: a function must not read the values of its tensors, which it is compiled without, got "
        f"{str(error).partition(chr(10))[0].rstrip('.')}; ops.cond, ops.where and ops.while_loop choose by them, and "
        "numbers that Python is to read are given as numbers"
    )


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line that called Ember ML, whatever lies between."""
    import warnings  # rarely needed

    warnings.warn(message, category, stacklevel=_callers()[0])


def caller() -> FrameType:
    """The innermost frame outside Ember ML."""
    return _callers()[1]


def _callers() -> tuple[int, FrameType]:
    """The innermost frame outside Ember ML, and its level as the caller of this function counts it."""
    level, frame = 0, sys._getframe()
    while _is_within(frame) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level, frame


_PACKAGE = __name__.partition(".")[0]


def _is_within(frame: FrameType) -> bool:
    """Whether a frame is one of Ember ML, or of a context manager that it opens."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in (_PACKAGE, "contextlib")
