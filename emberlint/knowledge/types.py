"""The types of values that the linter tells apart, as words."""

from __future__ import annotations

TENSOR = "tensor"  # an engine's tensor, or one of ember's
HOST = "host"  # a NumPy array: a tensor of the NumPy engine, host memory elsewhere
SCALAR = "scalar"  # a Python number or bool
SHAPE = "shape"  # a tuple of Python integers
SEQUENCE = "sequence"  # a list or tuple whose elements are known
REFERENCE = "reference"  # a module, function or class that was imported, by its full name
FUNCTION = "function"  # a function of this file
CLASS = "class"  # a class of this file
INSTANCE = "instance"  # an object of a class of this file, or one that returns tensors when called
DTYPE = "dtype"
STRING = "string"
NONE = "none"

ARRAYS = frozenset({TENSOR, HOST})
COLD = frozenset({SCALAR, STRING, NONE, SHAPE, DTYPE})  # what no rule fires on by itself
