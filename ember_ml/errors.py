"""The exceptions and warnings of Ember ML, each also the built-in that users would catch."""

from __future__ import annotations


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
