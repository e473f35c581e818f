"""Exceptions and warnings of Ember ML; each is also the built-in exception that users would catch."""

from __future__ import annotations


class EmberError(Exception):
    """Base class of all exceptions that Ember ML defines."""


class BackendNotFoundError(EmberError, ImportError, ValueError):
    """A backend is unknown, not installed, or fails to import."""


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


class PrecisionWarning(UserWarning):
    """Data was converted to a narrower dtype because the device does not support the wider one."""
