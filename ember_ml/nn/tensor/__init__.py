"""``EmberTensor``, one tensor type for every engine, and a namespace that follows the array API standard.

Every function here returns EmberTensors, whatever its arguments are; those of ``ops`` return an ``EmberTensor`` only if
an argument is one. So operators, indexing and methods of all results are the same on every engine.

>>> (add([1.0, 2.0], 2) * 10)[::-1].tolist()
[40.0, 30.0]
>>> x = arange(4.0)
>>> x.__array_namespace__().sum(x[1:] ** 2).item()
14.0
"""

from typing import TYPE_CHECKING

from ember_ml import older_names as _older_names
from ember_ml.dtypes import EmberDType as EmberDType
from ember_ml.nn.tensor.functions import category as _category
from ember_ml.nn.tensor.functions import functions as _functions
from ember_ml.nn.tensor.namespace import info as __array_namespace_info__
from ember_ml.nn.tensor.tensor import EmberTensor as EmberTensor
from ember_ml.nn.tensor.tensor import unwrap as unwrap
from ember_ml.nn.tensor.tensor import wrap as wrap
from ember_ml.ops import *

if TYPE_CHECKING:
    # Type checkers cannot read an __all__ that is computed at run time, so the star import above gives them no names.
    import ember_ml.nn.tensor.fft as fft
    from ember_ml.dtypes import *
    from ember_ml.nn.tensor.interfaces import DTypeInterface as DTypeInterface
    from ember_ml.nn.tensor.interfaces import TensorInterface as TensorInterface
    from ember_ml.ops.activations import *
    from ember_ml.ops.aliases import *
    from ember_ml.ops.bitwise import *
    from ember_ml.ops.collectives import *
    from ember_ml.ops.comparison import *
    from ember_ml.ops.control import *
    from ember_ml.ops.creation import *
    from ember_ml.ops.device import *
    from ember_ml.ops.dtypes import *
    from ember_ml.ops.fft import *  # type: ignore[no-redef] # the namespace below replaces it
    from ember_ml.ops.indexing import *  # type: ignore[assignment] # its scatter is used
    from ember_ml.ops.io import *
    from ember_ml.ops.linearalg import *  # type: ignore[assignment] # cond of ops.control is used
    from ember_ml.ops.losses import *
    from ember_ml.ops.manipulation import *
    from ember_ml.ops.math import *
    from ember_ml.ops.neural import *
    from ember_ml.ops.random import *
    from ember_ml.ops.stats import *
    from ember_ml.ops.vector import *

    DType = EmberDType

# Extensions of the standard: these namespaces replace functions of ``ops`` with the same name.
import ember_ml.nn.tensor.fft as fft  # isort: skip
import ember_ml.nn.tensor.linalg as linalg  # type: ignore[no-redef] # isort: skip

__array_api_version__ = "2024.12"

linearalg = linalg
vars().update(_functions(vars()), bitwise=_category(bitwise), random=_category(random), stats=_category(stats))

__all__ = [name for name, value in vars().items() if hasattr(value, "__operation__") or isinstance(value, EmberDType)]
__all__ += ["EmberDType", "EmberTensor", "__array_api_version__", "__array_namespace_info__"]
__all__ += ["bitwise", "e", "fft", "inf", "linalg", "linearalg", "nan", "newaxis", "pi", "random", "stats"]
__all__ += ["unwrap", "wrap"]

_older_names.register(__name__)
_older_names.install(__name__, linalg.__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
