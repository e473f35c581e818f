"""A small package of array functions, written for three engines before there was a place for engine code."""

from legacy import ops as ops
