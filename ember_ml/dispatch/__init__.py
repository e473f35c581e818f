"""Dispatch: from a documented signature to a call of the engine's function.

The steps of one call, ``ops.add(x, y)``:

1. ``add`` is the function that ``@op(promoted)`` returned for the documented one (``operation.py``). The annotations
   give each parameter a role (``roles.py``); the argument of the decorator is its dtype rule.
2. The fast path (``fast.py``, or the same in C, ``_fast.c``) looks up the types and dtypes of ``x`` and ``y`` in the
   operation's table. If they are tensors of one engine and of one dtype that needs no cast, and all options have plain
   types, it calls the engine's function with the arguments unchanged. This is the usual case, and ends here.
   Arguments that do not fit the parameters that engines receive, such as ``where=`` of a sum, are passed to the
   operation's form if it has one: a function composed of operations, which begins again with step 1.
3. All other calls take the general path (``general.py``). It starts with the promotion table (``promotion.py``): if
   that has the common dtype of two tensors, or of a tensor and a number, they are cast to it, and step 7 follows.
4. If there are ``EmberTensor`` arguments, they are unwrapped, the operation is called again, and its result is wrapped
   (``wrapping.py``).
5. The backend is that of the tensors among the arguments (``tensor_types.py``), or the active one if there are none.
   Tensors of two engines raise ``TypeError``.
6. Numbers, sequences and NumPy arrays become tensors of that backend, on the device of the other tensors. The tensors
   are cast as the dtype rule requires. Options become the plain types that all engines accept.
7. The backend's function is called: the engine's own, or the operation's body with that backend active.
8. If the engine raises because it has no kernel for the dtypes, NumPy computes the result. Any other error is
   translated to its common class and gets a note that names the call (``errors.py``).
"""

from ember_ml.dispatch.fast import has_extension as has_extension
from ember_ml.dispatch.operation import REGISTRY as REGISTRY
from ember_ml.dispatch.operation import Arrangement as Arrangement
from ember_ml.dispatch.operation import Operation as Operation
from ember_ml.dispatch.operation import computed_by as computed_by
from ember_ml.dispatch.operation import definition_of as definition_of
from ember_ml.dispatch.operation import op as op
from ember_ml.dispatch.operation import operation_of as operation_of
from ember_ml.dispatch.operation import rebind as rebind
from ember_ml.dispatch.operation import within as within
from ember_ml.dispatch.roles import COUNT as COUNT
from ember_ml.dispatch.roles import COUNTS as COUNTS
from ember_ml.dispatch.roles import DEVICE as DEVICE
from ember_ml.dispatch.roles import DTYPE as DTYPE
from ember_ml.dispatch.roles import FLAG as FLAG
from ember_ml.dispatch.roles import INDEX as INDEX
from ember_ml.dispatch.roles import MASK as MASK
from ember_ml.dispatch.roles import PLAIN as PLAIN
from ember_ml.dispatch.roles import SCALAR as SCALAR
from ember_ml.dispatch.roles import TENSOR as TENSOR
from ember_ml.dispatch.roles import Parameter as Parameter
from ember_ml.dispatch.tensor_types import HOST as HOST
from ember_ml.dispatch.tensor_types import NONE as NONE
from ember_ml.dispatch.tensor_types import NUMBER as NUMBER
from ember_ml.dispatch.tensor_types import SEQUENCE as SEQUENCE
from ember_ml.dispatch.tensor_types import UNKNOWN as UNKNOWN
from ember_ml.dispatch.tensor_types import as_list as as_list
from ember_ml.dispatch.tensor_types import backend_of as backend_of
from ember_ml.dispatch.tensor_types import classify as classify
from ember_ml.dispatch.tensor_types import common_backend as common_backend
from ember_ml.dispatch.tensor_types import common_device as common_device
from ember_ml.dispatch.tensor_types import is_tensor as is_tensor
from ember_ml.dispatch.tensor_types import is_tensor_like as is_tensor_like
from ember_ml.dispatch.tensor_types import leaf_types as leaf_types
from ember_ml.dispatch.wrapping import backend_of_wrapped as backend_of_wrapped
from ember_ml.dispatch.wrapping import holds_wrapped as holds_wrapped
from ember_ml.dispatch.wrapping import unwrap as unwrap
from ember_ml.dispatch.wrapping import wrap as wrap
