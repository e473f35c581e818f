"""The types of values that the linter distinguishes."""

from __future__ import annotations

TENSOR = "tensor"  # a tensor of an engine or of ember
HOST = "host"  # a NumPy array, which is a tensor of the NumPy backend and host memory for all others
SCALAR = "scalar"  # a Python number or bool
SHAPE = "shape"  # a tuple of Python integers
SEQUENCE = "sequence"  # a list or tuple whose elements are known
REFERENCE = "reference"  # an imported module, function or class, by its full name
FUNCTION = "function"  # a function of this file
CLASS = "class"  # a class of this file
INSTANCE = "instance"  # an instance of a class of this file, or an object that returns tensors when called
DTYPE = "dtype"
STRING = "string"
NONE = "none"

ARRAYS = frozenset({TENSOR, HOST})
IRRELEVANT = frozenset({SCALAR, STRING, NONE, SHAPE, DTYPE})  # no rule reports these on their own
