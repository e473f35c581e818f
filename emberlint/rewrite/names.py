"""Operations that are equivalent to an engine's functions.

Most have the same name. ``RENAMED`` has those with another name, ``DIFFERENT`` those with the same name and another
meaning.
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

# Functions whose operation has the same name and arguments but another result, so that they cannot be rewritten.
DIFFERENT = {
    # ``np.linalg.eig`` returns real numbers if it can, the operation always complex ones.
    "numpy": words("linalg.eig linalg.eigvals load put_along_axis random.shuffle resize save select"),
    "torch": words(
        """
        cond cross cummax cummin dropout eval flatten fold gather get_device gradient index_add istft linalg.lu_factor
        load lu manual_seed map max median meshgrid min nanmedian nonzero norm normalize one_hot pad randperm save
        scan scatter scatter_add sort split std stft svd threshold topk unfold unique var quantile
        """
    ),
    "mlx": frozenset({"load", "save", "eval", "synchronize", "linalg.lu", "topk"}),
    "jax": words(
        """
        can_cast load nn.identity put_along_axis random.binomial random.bits random.categorical
        random.multivariate_normal resize save select
        """
    ),
}


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


def differs(path: str) -> bool:
    """Whether the operation of the same name as a function has another meaning."""
    engine = engine_of(path)
    return local_name(path, engine) in DIFFERENT.get(engine, ())


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
