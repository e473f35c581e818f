"""What a value is, as far as reading tells: its kind, the engine it belongs to, and why that is believed.

A kind is one of the words below. ``None`` in place of a ``Value`` means unknown, and no rule about tensors may fire on
it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache

from emberlint import catalogue

TENSOR = "tensor"  # an engine's tensor, or one of ember's
HOST = "host"  # a NumPy array: a tensor of the NumPy engine, host memory elsewhere
SCALAR = "scalar"  # a Python number or bool
SHAPE = "shape"  # a tuple of Python integers
SEQUENCE = "sequence"  # a list or tuple whose elements are known
REFERENCE = "reference"  # a module, function or class that was imported, by its full name
FUNCTION = "function"  # a function of this file
CLASS = "class"  # a class of this file
INSTANCE = "instance"  # an object of a class of this file, or one that answers tensors when called
DTYPE = "dtype"
STRING = "string"
NONE = "none"

ARRAYS = frozenset({TENSOR, HOST})
COLD = frozenset({SCALAR, STRING, NONE, SHAPE, DTYPE})  # what no rule fires on by itself
ENGINES = ("numpy", "torch", "mlx", "jax", "tensorflow", "cupy")
EMBER = "ember"
BACKEND_NAMES = ("backend", "BACKEND", "backend_name", "BACKEND_NAME")  # how a backend's name is called, at the end

# Why a value has its kind; `emberlint why` fills in the source text.
SAYS = "is annotated so"
CALL = "is what this call answers"
METHOD = "is what this method answers"
OPERATOR = "is computed from a tensor"
ELEMENT = "is a part of a tensor"
LITERAL = "is written so"
BOUND = "is assigned here"
CHECKED = "is checked to be one"
ATTRIBUTE = "is read from a tensor"
MEMBER = "is assigned to the attribute"


def words(text: str) -> frozenset[str]:
    """The words of a text, for tables that are lists of names."""
    return frozenset(text.split())


class Value:
    """A known value: ``kind`` and ``engine``, ``dtype`` ("int", "float", "bool", "complex" or None), and its reasons.

    ``path`` is the full name of a reference. ``element`` and ``items`` describe a sequence: any element, or each.
    ``argument`` is the name of the parameter that the very object was passed in as, else empty. ``node`` is the
    expression that gave the value its kind, ``reason`` how, ``source`` the value it was derived from. ``hot`` says
    whether it can interest a rule: an array, something of an engine's, the backend's name, or a sequence of such.
    """

    __slots__ = (
        "argument",
        "dtype",
        "element",
        "engine",
        "hot",
        "items",
        "kind",
        "node",
        "nullable",
        "path",
        "reason",
        "source",
    )

    def __init__(
        self,
        kind: str,
        engine: str = "",
        node: ast.AST | None = None,
        reason: str = "",
        source: Value | None = None,
        *,
        dtype: str | None = None,
        path: str = "",
        element: Value | None = None,
        items: tuple[Value | None, ...] | None = None,
        argument: str = "",
        nullable: bool = False,
    ) -> None:
        self.kind = kind
        self.engine = engine
        self.node = node
        self.reason = reason
        self.source = source
        self.dtype = dtype
        self.path = path
        self.element = element
        self.items = items
        self.argument = argument
        self.nullable = nullable
        if kind in ARRAYS:
            self.hot = True
        elif kind == SEQUENCE:
            self.hot = (element is not None and element.hot) or (items is not None and any_hot(items))
        elif kind == REFERENCE:
            self.hot = engine_of(path) != ""
        else:
            self.hot = path != "" and kind == STRING

    def __repr__(self) -> str:
        parts = [self.kind, *(part for part in (self.engine, self.dtype, self.path) if part)]
        return f"<{' '.join(parts)}>"

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor that is not known to live in host memory."""
        return self.kind == TENSOR

    @property
    def is_array(self) -> bool:
        """Whether it is a tensor or a NumPy array."""
        return self.kind == TENSOR or self.kind == HOST

    @property
    def is_host(self) -> bool:
        """Whether it is a Python number or a shape: something that needs no engine."""
        return self.kind == SCALAR or self.kind == SHAPE

    def described(self) -> str:
        """The kind in words, for messages."""
        names = {"numpy": "NumPy", "torch": "torch", "mlx": "MLX", "jax": "JAX", EMBER: "ember"}
        if self.kind in ARRAYS:
            noun = "array" if self.engine in ("numpy", "jax", "mlx") else "tensor"
            return f"{names.get(self.engine, self.engine)} {noun}".strip()
        words = {SCALAR: "Python number", SHAPE: "shape", SEQUENCE: "sequence", REFERENCE: self.path}
        return words.get(self.kind, self.kind)

    def chain(self) -> Iterator[Value]:
        """The value, what it was derived from, and so on."""
        value: Value | None = self
        seen = 0
        while value is not None and seen < 24:
            yield value
            value = value.source
            seen += 1


def any_hot(values: Iterable[Value | None]) -> bool:
    """Whether one of some values can interest a rule."""
    for value in values:  # noqa: SIM110 - a loop is faster here, and this is asked for every list
        if value is not None and value.hot:
            return True
    return False


INT = Value(SCALAR, dtype="int", reason=LITERAL)
FLOAT = Value(SCALAR, dtype="float", reason=LITERAL)
BOOL = Value(SCALAR, dtype="bool", reason=LITERAL)
COMPLEX = Value(SCALAR, dtype="complex", reason=LITERAL)
NUMBER = Value(SCALAR, reason=LITERAL)
TEXT = Value(STRING, reason=LITERAL)
NOTHING = Value(NONE, reason=LITERAL)
DIMENSIONS = Value(SHAPE, dtype="int", reason=LITERAL, element=INT)
SOME_DTYPE = Value(DTYPE, reason=LITERAL)
CONSTANTS = {int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX, str: TEXT, type(None): NOTHING}
SCALARS = {"int": INT, "float": FLOAT, "bool": BOOL, "complex": COMPLEX, "": NUMBER}


@cache
def reference(path: str) -> Value:
    """The one value that stands for an imported name."""
    return Value(REFERENCE, path=path)


def merged(a: Value | None, b: Value | None) -> Value | None:
    """What holds of a value that is one or the other."""
    if a is b or a is None or b is None:
        return a if a is b else None
    if a.kind == b.kind:
        if a.kind == REFERENCE or a.kind in (FUNCTION, CLASS, INSTANCE):
            return a if a.path == b.path and a.node is b.node else None
        if a.kind == SEQUENCE:
            return Value(SEQUENCE, node=a.node, reason=a.reason, element=merged(a.element, b.element))
        if a.engine == b.engine and a.dtype == b.dtype and a.argument == b.argument:
            return a
        return Value(
            a.kind,
            a.engine if a.engine == b.engine else "",
            a.node,
            a.reason,
            a.source,
            dtype=a.dtype if a.dtype == b.dtype else None,
            element=a.element,
        )
    if a.kind == NONE and b.kind in ARRAYS:
        a, b = b, a
    if b.kind == NONE and a.kind in ARRAYS:
        return Value(a.kind, a.engine, a.node, a.reason, a.source, dtype=a.dtype, argument=a.argument, nullable=True)
    return None


# NumPy and jax.numpy do not say what they answer; whatever is not here answers an array.
_NUMPY_ANSWERS = {
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
_NUMPY = {name: kind for kind, names in _NUMPY_ANSWERS.items() for name in names.split()}

_TYPES = {
    "numpy.ndarray": (HOST, "numpy"),
    "numpy.typing.NDArray": (HOST, "numpy"),
    "numpy.matrix": (HOST, "numpy"),
    "torch.Tensor": (TENSOR, "torch"),
    "torch.nn.Parameter": (TENSOR, "torch"),
    "torch.nn.parameter.Parameter": (TENSOR, "torch"),
    "torch.LongTensor": (TENSOR, "torch"),
    "torch.FloatTensor": (TENSOR, "torch"),
    "torch.BoolTensor": (TENSOR, "torch"),
    "torch.IntTensor": (TENSOR, "torch"),
    "torch.DoubleTensor": (TENSOR, "torch"),
    "mlx.core.array": (TENSOR, "mlx"),
    "jax.Array": (TENSOR, "jax"),
    "jax.numpy.ndarray": (TENSOR, "jax"),
    "jax.numpy.array": (TENSOR, "jax"),
    "jaxlib.xla_extension.ArrayImpl": (TENSOR, "jax"),
    "tensorflow.Tensor": (TENSOR, "tensorflow"),
    "cupy.ndarray": (TENSOR, "cupy"),
    "ember_ml.nn.tensor.EmberTensor": (TENSOR, EMBER),
    "ember_ml.types.Tensor": (TENSOR, EMBER),
}
TYPE_NAMES = {"Tensor": EMBER, "EmberTensor": EMBER, "KerasTensor": ""}


@cache
def array_type(path: str, own: frozenset[str] = frozenset()) -> tuple[str, str] | None:
    """The kind and engine of the objects of a class by its full name, if they are arrays.

    ``Tensor`` is the name of many classes; only ember's counts, and those of the packages that are a file's ``own``.
    """
    found = _TYPES.get(path)
    if found is None:
        root, last = path.partition(".")[0], path.rpartition(".")[2]
        if last in TYPE_NAMES and engine_of(path) in ("", EMBER):
            is_own = last != "Tensor" or root == "ember_ml" or root in own
            return (TENSOR, TYPE_NAMES[last]) if is_own else None
    return found


@cache
def engine_of(path: str) -> str:
    """The engine that a full name belongs to; ember's operations are ``ember``; empty for others."""
    root = path.partition(".")[0]
    if root in ENGINES:
        return root
    if root == "ember_ml":
        return EMBER
    return ""


@cache
def answer(path: str) -> tuple[str, str] | None:
    """What a function answers, by its full name: a word for the kind, and the engine. ``None`` if that is unknown.

    The word is a kind, a Python number's type, or ``sequence`` for several tensors.
    """
    root, _, rest = path.partition(".")
    if root == "numpy":
        return _numpy(path, rest, HOST, "numpy")
    if root == "jax":
        if rest.startswith(("numpy.", "nn.", "random.", "lax.", "scipy.")):
            return _jax(rest)
        return (TENSOR, "jax") if rest == "device_put" else None
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


def _jax(rest: str) -> tuple[str, str] | None:
    space, _, name = rest.partition(".")
    if space == "numpy":
        return _numpy(f"numpy.{name}", name, TENSOR, "jax") or (
            (TENSOR, "jax") if name in ("float32", "int32") else None
        )
    if space == "nn" and name in _JAX_NN:
        return TENSOR, "jax"
    if space == "random" and name in _JAX_RANDOM:
        return TENSOR, "jax"
    return None


_JAX_NN = words(
    """
    relu relu6 sigmoid softplus silu swish gelu elu selu celu leaky_relu log_softmax softmax one_hot logsumexp
    """
)
_JAX_RANDOM = words(
    """
    PRNGKey key split normal uniform randint bernoulli categorical permutation choice
    """
)


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
    "bool": "bool",
    "(bool)": "bool",
    "int": "int",
    "float": "float",
    "str": STRING,
    "dtype": DTYPE,
    "Dtype": DTYPE,
    "EmberDType": DTYPE,
    "tuple[int, ...]": SHAPE,
    "tuple[int]": SHAPE,
    "Tensor or Scalar": TENSOR,
    "List of Tensors": SEQUENCE,
}


def _word(text: str, engine: str) -> tuple[str, str] | None:
    word = _WORDS.get(text) or _WORDS.get(text.partition(" #")[0])
    if word is None and "|" not in text and ("Tensor" in text or "array" in text) and text[:1] in "(tTlL":
        plain = text.replace("(", " ").replace("[", " ")
        word = (
            SEQUENCE if plain.split()[0] in ("Tensor", "tuple", "Tuple", "list", "List") and "int" not in text else None
        )
    if word is None and text.endswith("Result"):
        word = SEQUENCE
    return (word, engine) if word else None


# Methods and attributes, by what they answer on an array; what is not here is unknown.
_SAME_KIND_METHODS = words(
    """
    abs absolute add all any argmax argmin argsort astype bfloat16 bitwise_and bitwise_or bmm bool broadcast_to ceil
    clamp clip clone conj contiguous copy cos cosh cpu cuda cumprod cumsum detach diag diagonal div dot double eq exp
    expand expand_as expm1 fill_ flatten float floor floor_divide fmod gather ge gt half index_select int inverse
    isfinite isinf isnan le lerp log log10 log1p log2 logical_and logical_not logical_or logsumexp long lt masked_fill
    masked_select matmul max maximum mean median min minimum mm mul multiply narrow ne neg negative new_empty new_full
    new_ones new_tensor new_zeros norm permute pow prod ravel reciprocal relu remainder repeat requires_grad_ reshape
    round rsqrt scatter scatter_add select sigmoid sign sin sinh softmax sort sqrt square squeeze std sub subtract sum
    swapaxes t take tan tanh tile to to_device to_backend trace transpose tril triu true_divide trunc type unflatten
    unsqueeze var view view_as where zero_ add_ mul_ sub_ div_ clamp_ copy_ moveaxis index_add at set byteswap
    newbyteorder choose compress searchsorted log_softmax ptp repeat_interleave
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
# "torch": the same kind, on torch's tensors alone; NumPy's ``x.data`` is a buffer.
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

# Where a reduction of a torch tensor answers values and indices if it is given a dimension.
PAIRS = frozenset({"max", "min", "sort", "median", "mode", "kthvalue", "topk", "cummax", "cummin"})
