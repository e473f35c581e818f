"""Names that torch, Keras and JAX have for operations that have another name here.

A name is listed if it means the same in all of these libraries that have it, and its leading parameters are the same,
so that a call cannot be misread. ``torch.index_select(input, dim, index)`` has other parameters than ``take``, and
``right`` of ``torch.bucketize`` has another meaning than in ``digitize``: ``ember_ml.spellings`` says what to write
instead. Names of the array API standard and of NumPy are beside the operations themselves.
"""

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
