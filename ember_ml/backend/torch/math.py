"""Element by element."""

from torch import add, exp, multiply, negative, sqrt, subtract
