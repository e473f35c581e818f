"""Function transforms: gradients, vectorization, rematerialization and compilation, with the semantics of JAX.

Arguments, results and gradients are trees: tensors in nested dictionaries, lists and tuples. A *stateful* argument,
such as a model or an optimizer, holds tensors under fixed paths (``ember_ml.types.Stateful``). It is differentiated
with respect to its trainable parameters, its gradient is a flat dictionary from path to tensor, and tensors that a
function assigns to it remain assigned after the call.

Tensors are native tensors of the engine. ``backend/<engine>/transform.py`` implements the transforms of each engine on
flat lists of tensors; ``call.py`` flattens the trees.
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
