"""Transforms of functions of flat lists of arrays, by the tracer in this package."""

from __future__ import annotations

from ember_ml.backend.numpy.differentiation.transform import is_traced as is_traced
from ember_ml.backend.numpy.differentiation.transform import jvp as jvp
from ember_ml.backend.numpy.differentiation.transform import remembered as remembered
from ember_ml.backend.numpy.differentiation.transform import ruled as ruled
from ember_ml.backend.numpy.differentiation.transform import value_and_grad as value_and_grad
from ember_ml.backend.numpy.differentiation.transform import vjp as vjp
