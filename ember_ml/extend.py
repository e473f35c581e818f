"""Interface for libraries built on Ember ML, used by ``ember_ml.nn``, ``optim`` and ``training``.

Operations accept tensors of any engine, so most code only needs ``ember_ml.ops``. This module is for code that stores
or creates tensors, or chooses the backend that computes with them.

>>> from ember_ml import ops, use_backend
>>> with use_backend("numpy"):
...     x = ops.ones(2)
>>> is_tensor(x), backend_of(x).name
(True, 'numpy')
>>> with activate(backend_of(x)):
...     ops.zeros(2).tolist()
[0.0, 0.0]
"""

from ember_ml.backend import Backend, process_backend
from ember_ml.backend import active as activate
from ember_ml.backend import current as current_backend
from ember_ml.backend import load as load_backend
from ember_ml.dispatch import (
    TENSOR,
    Operation,
    backend_of,
    backend_of_wrapped,
    holds_wrapped,
    is_tensor,
    is_tensor_like,
    operation_of,
    unwrap,
    wrap,
)
from ember_ml.dispatch.checks import unchecked
from ember_ml.dispatch.errors import called_as
from ember_ml.dispatch.errors import rename as rename_error
from ember_ml.dispatch.fast import ENGINES
from ember_ml.dispatch.wrapping import register as register_wrapper
from ember_ml.ops._files import from_view, map_tensors, tensor_entries, write_tensors
from ember_ml.random.threefry import current_rows
from ember_ml.shapes.axes import axis_of
from ember_ml.shapes.neural import causal_offset
from ember_ml.shapes.windows import layout
from ember_ml.transform.recording import Recording

__all__ = [
    "ENGINES",
    "TENSOR",
    "Backend",
    "Operation",
    "Recording",
    "activate",
    "axis_of",
    "backend_of",
    "backend_of_wrapped",
    "called_as",
    "causal_offset",
    "current_backend",
    "current_rows",
    "from_view",
    "holds_wrapped",
    "is_tensor",
    "is_tensor_like",
    "layout",
    "load_backend",
    "map_tensors",
    "operation_of",
    "process_backend",
    "register_wrapper",
    "rename_error",
    "tensor_entries",
    "unchecked",
    "unwrap",
    "wrap",
    "write_tensors",
]
