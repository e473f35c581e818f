"""Names that torch, Keras and JAX have for operations that have another name here.

A name is listed if it means the same in all of these libraries that have it, and its leading parameters are the same,
so that a call cannot be misread. ``torch.index_select(input, dim, index)`` has other parameters than ``take``, and
``right`` of ``torch.bucketize`` has another meaning than in ``digitize``: such names are in ``ELSEWHERE``, and calling
one says what to write instead. Names of the array API standard and of NumPy are next to the operations themselves.
"""

from typing import NoReturn

from ember_ml.ops.activations import (
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    log_sigmoid,
    sigmoid,
    soft_shrink,
    softsign,
    tanh_shrink,
)
from ember_ml.ops.bitwise import bitwise_invert
from ember_ml.ops.comparison import equal, greater, greater_equal, less, less_equal, not_equal
from ember_ml.ops.control import stop_gradient
from ember_ml.ops.creation import asarray, copy, to_numpy
from ember_ml.ops.dtypes import is_complex, is_float, result_type
from ember_ml.ops.indexing import index_get, tensor_scatter_nd_update, top_k
from ember_ml.ops.linearalg import expm, inv, matmul, outer, pinv
from ember_ml.ops.losses import mean_absolute_error, mean_squared_error
from ember_ml.ops.manipulation import (
    array_split,
    broadcast_arrays,
    concat,
    expand_dims,
    moveaxis,
    permute_dims,
    repeat,
    size,
    swapaxes,
    unstack,
    vstack,
)
from ember_ml.ops.math import (
    clip,
    deg2rad,
    digamma,
    divide,
    lgamma,
    multiply,
    negative,
    rad2deg,
    round,
    sign,
    subtract,
    trapezoid,
    trunc,
)
from ember_ml.ops.random import random_permutation, set_seed

# torch
as_tensor = asarray
tensor = asarray
clone = copy
detach = stop_gradient
manual_seed = set_seed
randperm = random_permutation
numel = size
is_floating_point = is_float
cat = concat
unbind = unstack
unsqueeze = expand_dims
permute = permute_dims
movedim = moveaxis
swapdims = swapaxes
tensor_split = array_split
repeat_interleave = repeat
broadcast_tensors = broadcast_arrays
sub = subtract
mul = multiply
div = divide
neg = negative
sgn = sign
clamp = clip
eq = equal
ne = not_equal
lt = less
le = less_equal
gt = greater
ge = greater_equal
expit = sigmoid
gammaln = lgamma
psi = digamma
topk = top_k
mm = matmul
bmm = matmul
mv = matmul
ger = outer
inverse = inv
pinverse = pinv
matrix_exp = expm
hardshrink = hard_shrink
hardsigmoid = hard_sigmoid
hardswish = hard_silu
hardtanh = hard_tanh
logsigmoid = log_sigmoid
softshrink = soft_shrink
tanhshrink = tanh_shrink
# Symmetric in their arguments, which torch has in the other order.
mse_loss = mean_squared_error
l1_loss = mean_absolute_error

# Keras
convert_to_numpy = to_numpy
get_item = index_get
scatter_update = tensor_scatter_nd_update

# JAX
asanyarray = asarray
around = round
degrees = rad2deg
radians = deg2rad
fix = trunc
invert = bitwise_invert
iscomplexobj = is_complex
promote_types = result_type
row_stack = vstack
soft_sign = softsign
trapz = trapezoid

# Names of operations that have other parameters or another meaning here, or are no operations, and what is meant.
ELSEWHERE = {
    "adaptive_avg_pool2d": "ops.adaptive_average_pool",
    "addmm": "ops.add of ops.matmul",
    "avg_pool2d": "ops.average_pool, whose channels are the last axis by default",
    "batch_norm": "ops.batch_normalization",
    "bernoulli": "ops.random.bernoulli, whose first argument is the shape",
    "binary_cross_entropy": "ops.binary_crossentropy, target first",
    "binary_cross_entropy_with_logits": "ops.binary_crossentropy with from_logits=True, target first",
    "bitwise_count": "ops.count_ones",
    "bool_": "ops.bool",
    "bucketize": "ops.digitize, whose right= means the opposite",
    "categorical": "ops.random.categorical",
    "chain_matmul": "ops.multi_dot, which takes a list",
    "choice": "ops.random.choice",
    "clamp_max": "ops.minimum",
    "clamp_min": "ops.maximum",
    "conv1d": "ops.conv, whose channels are the last axis by default",
    "conv2d": "ops.conv, whose channels are the last axis by default",
    "conv3d": "ops.conv, whose channels are the last axis by default",
    "conv_transpose2d": "ops.conv_transpose, whose channels are the last axis by default",
    "cross_entropy": "ops.sparse_categorical_crossentropy with from_logits=True, target first",
    "double": "ops.float64",
    "embedding": "ops.embedding_lookup, whose first argument is the table",
    "enable_grad": "ops.grad, which computes the gradients of a function",
    "get_rng_state": "ops.random.get_state",
    "group_norm": "ops.group_normalization",
    "half": "ops.float16",
    "hann_window": "ops.hanning, which is symmetric",
    "inference_mode": "ops.stop_gradient for a tensor, and nothing for a model, whose calls are not recorded",
    "index_select": "ops.take",
    "interpolate": "ops.resize",
    "kl_div": "ops.kl_divergence, which takes probabilities, target first",
    "layer_norm": "ops.layer_normalization",
    "long": "ops.int64",
    "lu_solve": "ops.solve",
    "max_pool2d": "ops.max_pool, whose channels are the last axis by default",
    "msort": "ops.sort with axis=0",
    "multinomial": "ops.random.categorical, which takes logits",
    "narrow": "ops.slice",
    "nll_loss": "ops.sparse_categorical_crossentropy with from_logits=True, which takes log-probabilities too",
    "no_grad": "ops.stop_gradient for a tensor, and nothing for a model, whose calls are not recorded",
    "normal": "ops.random.normal, whose first argument is the shape",
    "permutation": "ops.random.permutation",
    "pixel_shuffle": "ops.depth_to_space, which takes channels last, and orders those of a block in another way",
    "poisson": "ops.random.poisson, whose first argument is the shape",
    "rand": "ops.random.uniform, whose first argument is the shape",
    "rand_like": "ops.random.uniform, whose first argument is the shape",
    "randint": "ops.random.randint, whose arguments are (shape, low, high)",
    "randint_like": "ops.random.randint, whose arguments are (shape, low, high)",
    "randn": "ops.random.normal, whose first argument is the shape",
    "randn_like": "ops.random.normal, whose first argument is the shape",
    "reduce_max": "ops.max",
    "reduce_mean": "ops.mean",
    "reduce_min": "ops.min",
    "reduce_sum": "ops.sum",
    "rms_norm": "ops.rms_normalization",
    "scaled_dot_product_attention": "ops.dot_product_attention, whose heads are the axis before the last",
    "set_grad_enabled": "ops.grad, which computes the gradients of a function",
    "set_rng_state": "ops.random.set_state",
    "smooth_l1_loss": "ops.huber_loss with delta=beta, target first, divided by beta",
    "std_mean": "ops.moments",
    "t": "ops.transpose",
    "take_along_dim": "ops.take_along_axis, whose axis is -1 by default",
    "triplet_margin_loss": "ops.triplet_loss",
    "uniform": "ops.random.uniform, whose first argument is the shape",
    "var_mean": "ops.moments",
    "variance": "ops.var",
    "view": "ops.reshape",
}


class Elsewhere:
    """Name of an operation that only other libraries have; using it says what to write.

    A ``__getattr__`` of the module would say it too, but CPython 3.11 to 3.13 looks up attributes of modules that have
    one three times more slowly.

    >>> Elsewhere("reduce_sum")([1.0])
    Traceback (most recent call last):
    AttributeError: module 'ember_ml.ops' has no attribute 'reduce_sum'; did you mean ops.sum?
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise AttributeError(f"module 'ember_ml.ops' has no attribute {self._name!r}; did you mean {self._meant}?")

    def __repr__(self) -> str:
        return f"<no ops.{self._name}; did you mean {self._meant}?>"

    @property
    def _meant(self) -> str:
        return ELSEWHERE[self._name]
