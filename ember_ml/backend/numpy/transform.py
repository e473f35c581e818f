"""Transforms of functions of flat lists of arrays, by the tracer in this package."""

from __future__ import annotations

from ember_ml.backend.autograd.transform import is_traced as is_traced
from ember_ml.backend.autograd.transform import jvp as jvp
from ember_ml.backend.autograd.transform import remembered as remembered
from ember_ml.backend.autograd.transform import ruled as ruled
from ember_ml.backend.autograd.transform import value_and_grad as value_and_grad
from ember_ml.backend.autograd.transform import vjp as vjp
