"""Element by element."""

from numpy import add, exp, multiply, negative, sqrt, subtract
