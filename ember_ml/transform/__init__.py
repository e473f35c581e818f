"""Transforms of functions: gradients, vectorisation, rematerialisation, compilation, with JAX's contract.

Arguments, answers and gradients are trees: tensors in nested dictionaries, lists and tuples. A *stateful* argument,
such as a model or an optimiser, holds tensors under fixed paths (``ember_ml.types.Stateful``): it is differentiated
with respect to its trainable parameters, its gradient is the flat dictionary from path to tensor, and what a function
assigns to it is there when the call is over.

The tensors are the engine's own. ``backend/<engine>/transform.py`` says how each engine differentiates, on flat lists
of tensors; the trees are flattened in ``call.py``, once for all of them.
"""

from ember_ml.ops.control import stop_gradient as stop_gradient
from ember_ml.transform.compilation import compile as compile
from ember_ml.transform.derivatives import grad as grad
from ember_ml.transform.derivatives import hessian as hessian
from ember_ml.transform.derivatives import jacobian as jacobian
from ember_ml.transform.derivatives import jvp as jvp
from ember_ml.transform.derivatives import value_and_grad as value_and_grad
from ember_ml.transform.derivatives import vjp as vjp
from ember_ml.transform.rules import checkpoint as checkpoint
from ember_ml.transform.rules import custom_gradient as custom_gradient
from ember_ml.transform.vectorization import vmap as vmap

__all__ = [
    "checkpoint", "compile", "custom_gradient", "grad", "hessian", "jacobian", "jvp", "stop_gradient", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip
