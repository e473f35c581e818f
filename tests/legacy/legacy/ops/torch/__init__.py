"""torch's functions."""

from .math import add, clip, divide, logsumexp

__all__ = ["add", "clip", "divide", "logsumexp"]
