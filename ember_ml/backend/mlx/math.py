"""Element by element."""

from mlx.core import add, exp, multiply, negative, sqrt, subtract
