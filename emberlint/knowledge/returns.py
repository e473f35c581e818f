"""Types of the results of functions, methods and attributes, by their names."""

from __future__ import annotations

from functools import cache

from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER
from emberlint.knowledge.types import DTYPE, HOST, SEQUENCE, SHAPE, STRING, TENSOR


def words(text: str) -> frozenset[str]:
    """Words of a text, for tables that are lists of names."""
    return frozenset(text.split())


# NumPy does not document return types; functions that are not listed here return an array.
_NUMPY_RESULTS = {
    "bool": """
        allclose array_equal array_equiv can_cast iscomplexobj isrealobj isdtype isfortran isscalar issubdtype
        iterable may_share_memory shares_memory
    """,
    "int": """
        ndim size
    """,
    "shape": """
        shape broadcast_shapes
    """,
    "string": """
        array2string array_repr array_str base_repr binary_repr typename format_float_positional
        format_float_scientific mintypecode get_include datetime_as_string
    """,
    "dtype": """
        common_type result_type promote_types min_scalar_type
    """,
    "sequence": """
        split array_split hsplit vsplit dsplit meshgrid broadcast_arrays nonzero unstack histogram histogram2d divmod
        modf frexp diag_indices diag_indices_from tril_indices triu_indices tril_indices_from triu_indices_from
        mask_indices unravel_index ix_ polydiv unique_all unique_counts unique_inverse linalg.eig linalg.eigh
        linalg.qr linalg.slogdet linalg.lstsq
    """,
    "": """
        copyto put place putmask fill_diagonal put_along_axis save savetxt savez savez_compressed set_printoptions
        seterr seterrcall setbufsize getbufsize geterr geterrcall get_printoptions printoptions errstate info
        show_config show_runtime test einsum_path load genfromtxt fromregex frompyfunc vectorize gradient
        apply_along_axis histogramdd nested_iters datetime_data linalg.test fft.test random.test random.seed
        random.set_state random.get_state random.shuffle random.bytes random.default_rng random.get_bit_generator
        random.set_bit_generator is_busday busday_count busday_offset polyfit svd linalg.svd unique average
    """,
}
_NUMPY = {name: kind for kind, names in _NUMPY_RESULTS.items() for name in names.split()}


@cache
def result_of(path: str) -> tuple[str, str] | None:
    """Type and engine of a function's result, by its full name; ``None`` if unknown.

    The type is one of ``knowledge.types``, the name of a Python number type, or ``sequence`` for several tensors.
    """
    root, _, rest = path.partition(".")
    if root == "numpy":
        return _numpy(path, rest, HOST, "numpy")
    if root == "jax":
        return (TENSOR, "jax") if rest == "device_put" else _jax(path)
    if root == "torch" or root == "mlx":
        return _documented(path, root)
    if root == "ember_ml":
        return _ember(rest)
    if root == "math":
        return ("int" if rest in ("floor", "ceil", "gcd", "lcm", "isqrt", "comb", "perm", "factorial") else "float", "")
    return None


def _numpy(path: str, name: str, kind: str, engine: str) -> tuple[str, str] | None:
    if name in _NUMPY:
        word = _NUMPY[name]
        return (word, engine) if word else None
    if catalogue.function(path) is None:
        return None
    return kind, engine


def _jax(path: str) -> tuple[str, str] | None:
    """Result of a function of JAX: documented, or that of NumPy's function of the same name."""
    record = catalogue.function(path)
    if record is None:
        space, _, name = path.rpartition(".")
        return (TENSOR, "jax") if space == "jax.numpy" and name in catalogue.dtypes() else None
    found = _word(record.get("returns", ""), "jax")
    if found is not None or not path.startswith("jax.numpy."):
        return found
    name = path.removeprefix("jax.numpy.")
    return _numpy(f"numpy.{name}", name, TENSOR, "jax")


def _documented(path: str, engine: str) -> tuple[str, str] | None:
    if path in ("torch.is_tensor", "torch.is_floating_point", "torch.is_complex"):
        return "bool", engine
    record = catalogue.function(path)
    if record is None:
        return None
    return _word(record.get("returns", ""), engine)


def _ember(rest: str) -> tuple[str, str] | None:
    if not rest.startswith("ops."):
        return None
    record = catalogue.operation(rest[4:])
    if record is None:
        return None
    if rest.endswith("to_numpy"):
        return HOST, "numpy"
    return _word(record["returns"], EMBER)


_WORDS = {
    "Tensor": TENSOR,
    "torch.Tensor": TENSOR,
    "Tensor:": TENSOR,
    "LongTensor": TENSOR,
    "array": TENSOR,
    "mlx.core.array": TENSOR,
    "Array": TENSOR,
    "jax.jaxlib._jax.Array": TENSOR,
    "bool": "bool",
    "(bool)": "bool",
    "int": "int",
    "float": "float",
    "str": STRING,
    "dtype": DTYPE,
    "DType": DTYPE,
    "Dtype": DTYPE,
    "EmberDType": DTYPE,
    "tuple[int, ...]": SHAPE,
    "tuple[int]": SHAPE,
    "Tensor or Scalar": TENSOR,
    "List of Tensors": SEQUENCE,
}


def _word(text: str, engine: str) -> tuple[str, str] | None:
    word = _WORDS.get(text) or _WORDS.get(text.partition(" #")[0])
    if word is None and "|" not in text and ("Tensor" in text or "rray" in text) and text[:1] in "(tTlL":
        plain = text.replace("(", " ").replace("[", " ")
        word = (
            SEQUENCE if plain.split()[0] in ("Tensor", "tuple", "Tuple", "list", "List") and "int" not in text else None
        )
    if word is None and text.endswith("Result"):
        word = SEQUENCE
    return (word, engine) if word else None


# Types of methods and attributes of an array; those that are not listed are unknown.
_SAME_KIND_METHODS = words(
    """
    abs absolute add all any argmax argmin argsort astype bfloat16 bitwise_and bitwise_or block_until_ready bmm bool
    broadcast_to ceil clamp clip clone conj contiguous copy cos cosh cpu cuda cumprod cumsum detach diag diagonal div
    dot double eq exp expand expand_as expm1 fill_ flatten float floor floor_divide fmod gather ge gt half index_select
    int inverse isfinite isinf isnan le lerp log log10 log1p log2 logical_and logical_not logical_or logsumexp long lt
    masked_fill masked_select matmul max maximum mean median min minimum mm mul multiply narrow ne neg negative
    new_empty new_full new_ones new_tensor new_zeros norm permute pow prod ravel reciprocal relu remainder repeat
    requires_grad_ reshape round rsqrt scatter scatter_add select sigmoid sign sin sinh softmax sort sqrt square squeeze
    std sub subtract sum swapaxes t take tan tanh tile to to_device to_backend trace transpose tril triu true_divide
    trunc type unflatten unsqueeze var view view_as where zero_ add_ mul_ sub_ div_ clamp_ copy_ moveaxis index_add
    byteswap newbyteorder choose compress searchsorted log_softmax ptp repeat_interleave
    """
)
METHODS = dict.fromkeys(sorted(_SAME_KIND_METHODS), "same")
METHODS |= {
    "item": "number",
    "tolist": "host list",
    "numpy": HOST,
    "size": "size",
    "dim": "int",
    "numel": "int",
    "element_size": "int",
    "nelement": "int",
    "ndimension": "int",
    "is_contiguous": "bool",
    "is_floating_point": "bool",
    "is_complex": "bool",
    "stride": SHAPE,
    "split": SEQUENCE,
    "chunk": SEQUENCE,
    "unbind": SEQUENCE,
    "topk": SEQUENCE,
    "nonzero": "nonzero",
}
# "torch": the same type, for torch tensors only; NumPy's ``x.data`` is a buffer.
ATTRIBUTES = {
    "T": "same",
    "mT": "same",
    "H": "same",
    "real": "same",
    "imag": "same",
    "data": "torch",
    "grad": "torch",
    "flat": "same",
    "shape": SHAPE,
    "ndim": "int",
    "size": "int",
    "itemsize": "int",
    "nbytes": "int",
    "dtype": DTYPE,
    "device": STRING,
    "requires_grad": "bool",
    "is_cuda": "bool",
}

# Reductions of a torch tensor that return values and indices if they are given a dimension.
PAIRS = frozenset({"max", "min", "sort", "median", "mode", "kthvalue", "topk", "cummax", "cummin"})
