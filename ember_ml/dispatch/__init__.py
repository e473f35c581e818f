"""Dispatch: from a documented signature to a call of the engine's function.

The life of one call, ``ops.add(x, y)``:

1. ``add`` is what ``@op(promoted)`` made of the documented function (``operation.py``). The annotations gave each
   parameter a role (``roles.py``), the decorator's argument its dtype rule.
2. The fast path (``fast.py``, or its twin in C, ``_fast.c``) looks up the types and dtypes of ``x`` and ``y`` in the
   operation's table. If they are tensors of one engine, of one dtype that needs no cast, and all options have plain
   types, the engine's function is called with the arguments as they are. That is the usual case, and the end.
3. Anything else takes the general path (``general.py``). It begins with the promotion table (``promotion.py``): two
   tensors, or a tensor and a number, that need a cast are cast to the common dtype that the table has for them.
4. Everything else takes the rest of the general path. Are there ``EmberTensor`` arguments? They are unwrapped, the
   operation is called again, and its result is wrapped (``wrapping.py``).
5. Which backend computes? That of the tensors among the arguments (``tensor_types.py``); the active one if there are
   none. Tensors of two engines are a ``TypeError``.
6. Numbers, sequences and host arrays become tensors of that backend, on the device of the tensors that are there; the
   dtype rule says what they are cast to; options become the plain types that all engines agree on.
7. The backend's function is called: the engine's own, or the operation's body with that backend active.
8. If the engine raises: where it has no kernel for the dtypes, NumPy computes; otherwise the error gets its agreed
   class and a note that names the call (``errors.py``).
"""

from ember_ml.dispatch.operation import REGISTRY as REGISTRY
from ember_ml.dispatch.operation import Operation as Operation
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
