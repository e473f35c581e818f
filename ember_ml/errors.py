"""The exceptions and warnings of Ember ML, each also the built-in that users would catch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


class EmberError(Exception):
    """The base of every exception that Ember ML defines."""


class BackendNotFoundError(EmberError, ImportError, ValueError):
    """A backend that is unknown, not installed, or fails to import."""


class MissingOperationError(EmberError, NotImplementedError):
    """An operation that a backend does not have."""


class UnsupportedError(EmberError, TypeError):
    """A dtype or combination that an engine or device cannot represent."""


class AxisError(EmberError, ValueError, IndexError):
    """An axis that a tensor does not have."""


class LinAlgError(EmberError, ValueError):
    """A matrix that is singular, not positive definite, or does not converge."""


class ForkError(EmberError, RuntimeError):
    """A backend that cannot compute in this process, which was forked from one that has used it."""


class PrecisionWarning(UserWarning):
    """Host data was narrowed because the device has no wider type."""


def axis_error(axis: int, ndim: int, name: str = "axis", of: str = "tensor") -> AxisError:
    """The error for an axis that a tensor, or a result, with ``ndim`` axes does not have."""
    if ndim:
        return AxisError(f"{name} must be from {-ndim} to {ndim - 1} for a {ndim}-d {of}, got {axis}")
    return AxisError(f"{name} must not be given for a 0-d {of}, got {axis}")


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
