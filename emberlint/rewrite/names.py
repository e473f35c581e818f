"""Operations that are equivalent to an engine's functions.

Most have the same name. ``RENAMED`` has those with another name, ``DIFFERENT`` those with the same name and another
meaning, and what differs.
"""

from __future__ import annotations

from functools import cache

from emberlint.config import EMBER_TENSORS
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import engine_of
from emberlint.knowledge.returns import words

# Name of an engine's function, without the engine -> name of the operation.
RENAMED = {
    "numpy": {
        "around": "round",
        "asanyarray": "asarray",
        "ascontiguousarray": "asarray",
        "bitwise_count": "count_ones",
        "degrees": "rad2deg",
        "fix": "trunc",
        "invert": "bitwise_invert",
        "lib.stride_tricks.sliding_window_view": "sliding_window",
        "radians": "deg2rad",
        "row_stack": "vstack",
    },
    "torch": {
        "as_tensor": "asarray",
        "bmm": "matmul",
        "broadcast_tensors": "broadcast_arrays",
        "cat": "concat",
        "clamp": "clip",
        "clone": "copy",
        "detach": "stop_gradient",
        "div": "divide",
        "eq": "equal",
        "equal": "array_equal",
        "fix": "trunc",
        "ge": "greater_equal",
        "ger": "outer",
        "gt": "greater",
        "inverse": "inv",
        "le": "less_equal",
        "linalg.matrix_exp": "expm",
        "lt": "less",
        "matrix_exp": "expm",
        "mm": "matmul",
        "movedim": "moveaxis",
        "mul": "multiply",
        "mv": "matmul",
        "ne": "not_equal",
        "neg": "negative",
        "nn.functional.hardshrink": "hard_shrink",
        "nn.functional.hardsigmoid": "hard_sigmoid",
        "nn.functional.hardswish": "hard_swish",
        "nn.functional.hardtanh": "hard_tanh",
        "nn.functional.l1_loss": "mean_absolute_error",
        "nn.functional.logsigmoid": "log_sigmoid",
        "nn.functional.mse_loss": "mean_squared_error",
        "nn.functional.softshrink": "soft_shrink",
        "nn.functional.tanhshrink": "tanh_shrink",
        "numel": "size",
        "permute": "permute_dims",
        "repeat_interleave": "repeat",
        "special.expit": "sigmoid",
        "special.gammaln": "lgamma",
        "special.psi": "digamma",
        "sub": "subtract",
        "swapdims": "swapaxes",
        "take_along_dim": "take_along_axis",
        "tensor": "asarray",
        "transpose": "swapaxes",
        "unbind": "unstack",
        "unsqueeze": "expand_dims",
    },
    "mlx": {"degrees": "rad2deg", "radians": "deg2rad", "nn.hardswish": "hard_swish", "nn.softshrink": "soft_shrink"},
    "jax": {
        "around": "round",
        "degrees": "rad2deg",
        # JAX's are zeros; the operations of the same names return memory as it is.
        "empty": "zeros",
        "empty_like": "zeros_like",
        "invert": "bitwise_invert",
        "lax.concatenate": "concat",
        "lax.convert_element_type": "cast",
        "lax.dot": "matmul",
        "lax.eq": "equal",
        "lax.erf_inv": "erfinv",
        "lax.ge": "greater_equal",
        "lax.gt": "greater",
        "lax.is_finite": "isfinite",
        "lax.le": "less_equal",
        "lax.logistic": "sigmoid",
        "lax.lt": "less",
        "lax.max": "maximum",
        "lax.min": "minimum",
        "lax.mul": "multiply",
        "lax.ne": "not_equal",
        "lax.neg": "negative",
        "lax.population_count": "count_ones",
        "lax.pow": "power",
        "lax.rem": "fmod",
        "lax.rev": "flip",
        "lax.select": "where",
        "lax.sub": "subtract",
        "lax.transpose": "permute_dims",
        "radians": "deg2rad",
        "special.expit": "sigmoid",
        "special.gammaln": "lgamma",
    },
}
# Functions of ``jax.lax`` that are equivalent to the operation of the same name. Others of the same name are not:
# ``lax.round`` rounds halves away from zero, ``lax.div`` of integers truncates, ``lax.clamp`` has the bounds first.
_LAX = words(
    """
    abs acos acosh add asin asinh associative_scan atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor cbrt
    ceil cond conj cos cosh cumprod cumsum digamma erf erfc exp exp2 expand_dims expm1 floor fori_loop full full_like
    imag lgamma log log1p map nextafter real reciprocal reshape rsqrt scan sign sin sinh sqrt square squeeze
    stop_gradient tan tanh top_k
    """
)

_PAIR = "torch returns `(values, indices)` along `dim`; ops returns only the values"
ORDERED = "ops returns eigenvalues in ascending order of the real part, then of the imaginary part"
_REAL = f"NumPy returns real numbers when it can; ops always returns complex numbers; {ORDERED}"
_FILES = "ops takes the path first, then any tree of tensors; the suffix sets the format"
_FORMATS = "ops reads .safetensors, .npz and .npy, in the structure that was saved, and never unpickles"
_IMAGES = "NumPy repeats or drops elements; ops resamples images"
_IN_PLACE = "NumPy changes its argument; ops returns a new tensor"
_BITS = "ops draws other numbers, the same on every engine"
_PARTS = "torch takes the weights of each layer in one list; ops computes one layer"
_LOSS = "torch takes log-probabilities first, with time as the first axis; ops takes the labels first, then logits"
_PER_ELEMENT = "torch takes an index for each element, as `ops.{}` does; ops takes whole slices at the indices"
_FRAMES = (
    "torch takes `n_fft, hop_length, win_length`, and a window of ones by default; ops takes "
    '`sequence_length, sequence_stride, fft_length`, and "hann"'
)

# Functions whose operation has the same name but another meaning, and what differs: calls are not rewritten.
DIFFERENT = {
    "numpy": {
        "can_cast": "NumPy allows what loses no digits; ops what promotion converts, such as int64 to float32",
        "linalg.eig": _REAL,
        "linalg.eigvals": _REAL,
        "load": _FORMATS,
        "put_along_axis": _IN_PLACE,
        "random.shuffle": _IN_PLACE,
        "resize": _IMAGES,
        "save": _FILES,
    },
    "torch": {
        "can_cast": "torch compares kinds alone, so float64 casts to float16; ops asks what promotion converts",
        "cond": "torch takes the operands in one tuple; ops takes them as separate arguments",
        "cross": "without `dim`, torch uses the first axis of length 3; ops uses the last axis",
        **dict.fromkeys(("cummax", "cummin", "max", "min", "sort"), _PAIR),
        "ctc_loss": _LOSS,
        "dropout": "torch takes `train` third, and draws from its own generator; ops has `training=` and `key=`",
        "flatten": "torch flattens the axes from `start_dim` to `end_dim`; ops all of them",
        "gather": _PER_ELEMENT.format("take_along_axis"),
        "get_device": "torch returns the number of a CUDA device, or -1; ops returns a name such as `cuda:0`",
        "gradient": "torch returns a tuple also for one axis; ops one tensor",
        "gru": _PARTS,
        "histogram": "torch has 100 bins by default, and counts in floats; ops has 10, and counts in int64",
        "index_add": "torch takes `dim` second; in ops, `index` is what `x[index]` takes",
        "istft": _FRAMES,
        "linalg.lu_factor": "pivots count from 1 in torch, from 0 in ops",
        "load": "ops reads .safetensors, .npz and .npy, and never unpickles",
        "lstm": _PARTS,
        "lu": "torch returns both factors in one matrix, as `ops.lu_factor` does; ops returns P, L and U",
        "manual_seed": "torch returns its generator; " + _BITS,
        "median": "torch returns the lower of the two middle values, ops their mean",
        "meshgrid": '`indexing` defaults to "ij" in torch, to "xy" in ops',
        "nanmedian": "torch returns the lower of the two middle values, ops their mean",
        "nn.functional.ctc_loss": _LOSS,
        "nn.functional.linear": "torch's weight has the axes (out, in), that of ops (in, out)",
        "nn.functional.pad": "torch takes the pads of the last axis first, in one tuple; ops a pair for each axis",
        "nonzero": "torch returns one row per element; ops returns a tuple with the indices along each axis",
        "norm": "torch's `p` is the order of all elements as one vector; the `ord` of a matrix in ops is of the matrix",
        "quantile": "torch takes `q` of the dtype of the tensor; between infinities it returns NaN",
        "randperm": _BITS,
        "save": "ops takes the path first, and never pickles",
        "scatter": _PER_ELEMENT.format("put_along_axis"),
        "scatter_add": "torch takes an index for each element; ops takes whole slices at the indices",
        "select": "torch takes one index along `dim`, as `x[index]` does; ops chooses elements by conditions",
        "split": "torch takes the size of a part; ops takes the number of parts or the split points, as NumPy does",
        **dict.fromkeys(("std", "var"), "`correction` defaults to 1 in torch, to 0 in ops"),
        "stft": _FRAMES,
        "svd": "torch returns V, reduced by default; ops returns its conjugate transpose, and square matrices",
        "topk": "of equal elements, torch chooses any, ops the first",
        "unfold": "torch's method takes windows along one axis; the operation takes patches of images",
        "unique": "torch has `sorted` and `dim`; ops has `axis`, and counts all NaNs as one element",
    },
    "mlx": {
        "eval": "MLX evaluates all its arguments; ops returns what it evaluates",
        "linalg.lu": "MLX returns the rows in a vector; ops returns a permutation matrix",
        "load": "ops reads .safetensors, .npz and .npy, in the structure that was saved",
        "save": _FILES,
        "synchronize": "MLX takes a stream; ops a device",
        "topk": "MLX returns values in ascending order; ops returns `(values, indices)`, largest first",
    },
    "jax": {
        "can_cast": "JAX allows what NumPy does; ops what promotion converts, such as int64 to float32",
        "load": "ops reads .safetensors, .npz and .npy, and never unpickles",
        "nn.identity": "JAX returns its argument; ops an identity matrix",
        "put_along_axis": "JAX has `inplace=`, which must be false; ops has none",
        "random.binomial": f"JAX takes the key first; {_BITS}",
        "random.bits": f"JAX takes the key first; {_BITS}",
        "random.categorical": "JAX takes the key first, and the shape of the result; ops `num_samples`",
        "random.multivariate_normal": "JAX takes the key first, and the shape of all axes but the last; ops `key=`",
        "resize": _IMAGES.replace("NumPy", "JAX"),
        "save": _FILES,
    },
}

# What to write instead of functions of NumPy without an equivalent operation; ``{0}`` is the namespace.
_INSTEAD = {
    "numpy.copyto": "`x[...] = y`",
    "numpy.ediff1d": "`{0}.diff({0}.ravel(x))`",
    "numpy.extract": "`x[mask]`",
    "numpy.flatnonzero": "`{0}.nonzero({0}.ravel(x))[0]`",
    "numpy.indices": '`{0}.stack({0}.meshgrid(*map({0}.arange, shape), indexing="ij"))`',
    "numpy.iscomplex": "`{0}.imag(x) != 0`",
    "numpy.modf": "`x - {0}.trunc(x)` and `{0}.trunc(x)`",
    "numpy.put": "`x[...] = {0}.reshape({0}.index_update({0}.ravel(x), i, v), x.shape)`",
    "numpy.putmask": "`x[...] = {0}.where(mask, v, x)`",
    "numpy.tril_indices": "`{0}.nonzero({0}.tril({0}.ones((n, n))))`",
    "numpy.triu_indices": "`{0}.nonzero({0}.triu({0}.ones((n, n))))`",
}


def substitute(path: str, space: str) -> str:
    """What to write instead of a function of NumPy without an equivalent operation; empty if it is not known."""
    return _INSTEAD.get(path, "").format(space)


@cache
def operation_for(path: str) -> str:
    """Name under ``ops`` of the operation for an engine's function; empty if there is none."""
    engine = engine_of(path)
    name = local_name(path, engine)
    if not name:
        return ""
    renamed = RENAMED.get(engine, {}).get(name)
    if renamed is not None:
        return renamed
    space, _, last = name.rpartition(".")
    if space in ("linalg", "fft", "random"):
        record = catalogue.operation(f"{space}.{last}")
        if record is None:
            return ""
        plain = catalogue.operation(last)
        return last if plain is record else f"{space}.{last}"
    if space == "lax":
        return last if last in _LAX else ""
    if space in ("", "special", "nn.functional", "nn", "fast"):
        return last if catalogue.operation(last) is not None else ""
    return ""


def spelled(operation: str, namespace: str) -> str:
    """Name of an operation under a namespace; in ``ember_ml.nn.tensor``, ``fft`` is the namespace of transforms."""
    return "fft.fft" if operation == "fft" and namespace == EMBER_TENSORS else operation


def difference(path: str) -> str:
    """What the operation of the same name as a function does differently; empty if it has the same meaning."""
    engine = engine_of(path)
    return DIFFERENT.get(engine, {}).get(local_name(path, engine), "")


def agrees(name: str, count: int, names: tuple[str | None, ...]) -> bool:
    """Whether a function of ``DIFFERENT`` agrees with the operation for these arguments.

    Examples are ``torch.max`` of one tensor, and ``torch.std`` with an explicit correction.
    """
    if name in ("std", "var"):
        return "correction" in names
    return name in ("max", "min", "norm") and count == 1 and not names


def local_name(path: str, engine: str) -> str:
    """Name of a function without the engine: ``linalg.norm`` for ``mlx.core.linalg.norm``."""
    rest = path.partition(".")[2]
    if engine == "mlx":
        return rest[5:] if rest.startswith("core.") else rest
    if engine == "jax":
        if rest.startswith(("nn.", "lax.", "random.")):
            return rest
        place = next((place for place in ("numpy.", "scipy.") if rest.startswith(place)), "")
        return rest[len(place) :] if place else ""
    return rest
