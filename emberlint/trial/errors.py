"""The error of a trial that cannot be run."""

from __future__ import annotations


class TrialError(Exception):
    """The tests cannot be run or compared; the message says what to do."""
