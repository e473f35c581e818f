"""From a call of an engine's function to the same call of an operation: the name, and the names of the arguments.

Most functions have an operation of their own name. ``RENAMED`` holds those whose operation is called otherwise,
``DIFFERENT`` those whose operation has the name and another meaning; arguments are matched by the two signatures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from emberlint.findings import SAFE, UNSAFE, Edit
from emberlint.inference.callees import last_of
from emberlint.inference.file import File
from emberlint.inference.values import INT, Value
from emberlint.knowledge import catalogue, matrix
from emberlint.knowledge.catalogue import Parameter
from emberlint.knowledge.engines import engine_of
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import ARRAYS, NONE, SCALAR, SEQUENCE, SHAPE, STRING
from emberlint.source.tree import dotted

# An engine's function, without the engine's name -> the operation.
RENAMED = {
    "numpy": {
        "around": "round",
        "asanyarray": "asarray",
        "ascontiguousarray": "asarray",
        "bitwise_count": "count_ones",
        "degrees": "rad2deg",
        "fix": "trunc",
        "invert": "bitwise_invert",
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
    "jax": {"around": "round", "degrees": "rad2deg", "invert": "bitwise_invert", "radians": "deg2rad", "fix": "trunc"},
}

# Functions whose operation bears the name, takes the arguments and answers something else: a person must decide.
DIFFERENT = {
    "numpy": frozenset({"load", "save", "select", "put_along_axis", "random.shuffle", "resize"}),
    "torch": words(
        """
        cond cross cummax cummin dropout eval flatten fold gather get_device gradient index_add istft linalg.lu_factor
        load lu map max median meshgrid min nanmedian nonzero norm normalize one_hot pad save scan scatter scatter_add
        sort split std stft svd threshold unfold unique var quantile
        """
    ),
    "mlx": frozenset({"load", "save", "eval", "synchronize", "linalg.lu"}),
    "jax": frozenset({"load", "save", "cond", "map", "scan", "resize"}),
}

# Parameters that engines and the array API standard name differently.
_KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "dims": "axes", "ddof": "correction", "a_min": "min", "a_max": "max"}


# Parameters that mean something else where they are left out: what has to be written then, or nothing if a person must
# decide.
_DEFAULTS = {
    "mlx.core.put_along_axis": ("axis", ""),
    "mlx.core.random.categorical": ("num_samples", ""),
    "mlx.core.softmax": ("axis", "None"),
    "torch.cosine_similarity": ("axis", "1"),
    "torch.nn.functional.cosine_similarity": ("axis", "1"),
    "torch.nn.functional.log_softmax": ("axis", ""),
    "torch.nn.functional.normalize": ("axis", "1"),
    "torch.nn.functional.softmax": ("axis", ""),
    "torch.take_along_dim": ("axis", ""),
}


class Rewrite(NamedTuple):
    """The operation's name under ``ops``, the edits of the arguments, and how safe the whole is."""

    operation: str
    edits: tuple[Edit, ...]
    safety: str


@cache
def operation_for(path: str) -> str:
    """The operation that stands for an engine's function, as it is written after ``ops.``; empty if there is none."""
    engine = engine_of(path)
    name = _local(path, engine)
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
    if space in ("", "special", "nn.functional", "nn", "fast"):
        return last if catalogue.operation(last) is not None else ""
    return ""


def differs(path: str) -> bool:
    """Whether the operation that bears a function's name means something else."""
    engine = engine_of(path)
    return _local(path, engine) in DIFFERENT.get(engine, ())


def is_alike(name: str, count: int, names: tuple[str | None, ...]) -> bool:
    """Whether one of ``DIFFERENT`` means what the operation does when it is called so: ``torch.max`` of one tensor,
    ``torch.std`` with the correction that the two leave out differently.
    """
    if name in ("std", "var"):
        return "correction" in names
    return name in ("max", "min", "norm") and count == 1 and not names


def _local(path: str, engine: str) -> str:
    """A function's name without its engine's: ``linalg.norm`` of ``mlx.core.linalg.norm``."""
    rest = path.partition(".")[2]
    if engine == "mlx":
        return rest[5:] if rest.startswith("core.") else rest
    if engine == "jax":
        return rest[6:] if rest.startswith("numpy.") else rest if rest.startswith("nn.") else ""
    return rest


def rewritten(node: ast.Call, path: str, file: File) -> Rewrite | None:
    """The call as a call of an operation, where its arguments have a place there; ``None`` if a person must decide."""
    arguments, keywords = node.args, node.keywords
    names = tuple([keyword.arg for keyword in keywords]) if keywords else ()
    if path in _SPREAD and len(arguments) > 1:
        return _gathered(node, path, names, file)
    plan = _plan(path, len(arguments), names, matrix.path_of(file.config))
    if plan is None or ast.Starred in map(type, arguments):
        return None
    operation, changes, safety, places, missing = plan
    given = [*arguments, *[keyword.value for keyword in keywords]] if keywords else arguments
    for argument, parameter in zip(given, places, strict=True):
        kind = type(argument)
        if kind is ast.Constant:
            if type(argument.value) is str and is_unheld(argument, parameter.role):  # type: ignore[attr-defined]
                return None
        elif (kind is ast.List or parameter.role == "DTypeLike") and is_unheld(argument, parameter.role):
            return None
    if safety != UNSAFE:
        numbers = safety == _OF_NUMBERS and sum(place.role in _TENSORS for place in places) == 1
        safety = SAFE if all(_is_measured(*pair, numbers, file) for pair in zip(given, places, strict=True)) else UNSAFE
    edits = tuple(_edits(node, changes, file)) if changes else ()
    return Rewrite(operation, (*edits, last_argument(node, missing, file)) if missing else edits, safety)


def is_unheld(node: ast.expr, role: str) -> bool:
    """Whether an argument is written out, and no tensor and no dtype of one: text, ``dtype=object``."""
    if role == "DTypeLike":
        return isinstance(node, (ast.Constant, ast.Name, ast.Attribute)) and not _may_be_held(node)
    if role not in _TENSORS:
        return False
    return _is_text(node) or (isinstance(node, ast.List) and any(map(_is_text, node.elts)))


# Functions that take the lengths of axes one by one, where the operation takes a shape.
_SPREAD = frozenset({"torch.empty", "torch.ones", "torch.zeros"})


def _gathered(node: ast.Call, path: str, names: tuple[str | None, ...], file: File) -> Rewrite | None:
    """A call whose arguments are the lengths of axes, with a shape of them."""
    plan = _plan(path, 1, names, matrix.path_of(file.config))
    if plan is None or ast.Starred in map(type, node.args):
        return None
    start, end = file.span(node.args[0])[0], file.span(node.args[-1])[1]
    if b"(" in file.source.data[file.span(node.func)[1] : start].strip(b" \t\n")[1:]:
        return None  # the first is in brackets, and where they end is not known
    return Rewrite(plan.operation, (Edit(start, start, "("), Edit(end, end, ")")), UNSAFE)


class _Plan(NamedTuple):
    """What all calls of a function with the same number of arguments and the same keywords have in common."""

    operation: str
    changes: tuple[tuple[int, str], ...]
    safety: str
    places: tuple[Parameter, ...]
    missing: str


@cache
def _plan(path: str, count: int, names: tuple[str | None, ...], place: str) -> _Plan | None:
    """What becomes of such a call, by the matrix in a file; ``None`` if a person must decide."""
    changes = _matched(path, count, names)
    if changes is None:
        return None
    places = _places(path, count, names, changes)
    if path == "torch.nn.functional.gelu" and any(parameter.name == "approximate" for parameter in places):
        return None  # a word there, a bool here
    name, value = _DEFAULTS.get(path, ("", ""))
    left_out = name != "" and all(parameter.name != name for parameter in places)
    if left_out and not value:
        return None
    loose = _LOOSE.get(path, ())
    differs = _ALL in loose or any(parameter.name in loose for parameter in places)
    safety = UNSAFE if differs or left_out else _safety(place, path, count, names)
    return _Plan(operation_for(path), changes, safety, places, f"{name}={value}" if left_out else "")


class _Signatures(NamedTuple):
    """The parameters of a function by their places, and those of its operation: by place, by name, and required."""

    theirs: tuple[str, ...]
    positional: tuple[Parameter, ...]
    variadic: bool
    by_name: frozenset[str]
    required: frozenset[str]


@cache
def _signatures(path: str) -> _Signatures | None:
    """The parameters of a function and of its operation; ``None`` where there is none that means the same."""
    engine = engine_of(path)
    operation = operation_for(path)
    record = catalogue.operation(operation) if operation else None
    if record is None:
        return None
    native = catalogue.function(path if engine != "jax" else f"numpy.{_local(path, engine)}")
    theirs = (catalogue.parameters(native) if native else None) or []
    ours = catalogue.parameters(record) or []
    return _Signatures(
        tuple(parameter.name for parameter in theirs if parameter.kind in "PB"),
        tuple(parameter for parameter in ours if parameter.kind in "PB"),
        any(parameter.kind == "V" for parameter in ours),
        frozenset(parameter.name for parameter in ours if parameter.kind in "BK"),
        frozenset(parameter.name for parameter in ours if parameter.kind in "PBK" and parameter.default is None),
    )


def _matched(path: str, count: int, names: tuple[str | None, ...]) -> tuple[tuple[int, str], ...] | None:
    """What makes a call's arguments those of the operation: the places of those that get a name, or another, and that.

    ``count`` arguments are given by place, the others by ``names``. ``None`` where one has no place.
    """
    signatures = _signatures(path)
    if signatures is None or None in names or (differs(path) and not is_alike(last_of(path), count, names)):
        return None
    theirs, positional, variadic, by_name, required = signatures
    changes: list[tuple[int, str]] = []
    given: set[str] = set()
    for i in range(count):
        their = theirs[i] if i < len(theirs) else ""
        meant = _meant(their, by_name)
        if not changes and i < len(positional) and _same_place(their, meant, positional[i], i):
            given.add(positional[i].name)
        elif not changes and variadic and i >= len(positional):
            continue
        elif meant in by_name and meant not in given:
            changes.append((i, meant))
            given.add(meant)
        else:
            return None
    for i, name in enumerate(names, count):
        meant = _meant(name or "", by_name)
        if meant not in by_name or meant in given:
            return None
        if meant != name:
            changes.append((i, meant))
        given.add(meant)
    return tuple(changes) if required <= given else None


def _meant(their: str, by_name: frozenset[str]) -> str:
    """What the operation calls a parameter; torch's ``dims`` are the axes of some and the axis of others."""
    if their in by_name:
        return their
    meant = _KEYWORDS.get(their, their)
    return "axis" if meant == "axes" and "axes" not in by_name else meant


def _places(
    path: str, count: int, names: tuple[str | None, ...], changes: tuple[tuple[int, str], ...]
) -> tuple[Parameter, ...]:
    """The operation's parameter for each argument of a matched call."""
    record = catalogue.operation(operation_for(path)) or {}
    ours = catalogue.parameters(record) or []
    by_name = {parameter.name: parameter for parameter in ours}
    by_place = [parameter for parameter in ours if parameter.kind in "PBV"]
    called = {**dict(enumerate(names, count)), **dict(changes)}
    found = [by_name[name] if (name := called.get(i)) else by_place[min(i, len(by_place) - 1)] for i in range(count)]
    return (*found, *(by_name[called[i] or ""] for i in range(count, count + len(names))))


def _edits(node: ast.Call, changes: tuple[tuple[int, str], ...], file: File) -> Iterator[Edit]:
    """The edits that give a call's arguments their names."""
    count = len(node.args)
    for place, name in changes:
        if place < count:
            start, _ = file.span(node.args[place])
            yield Edit(start, start, f"{name}=")
        else:
            keyword = node.keywords[place - count]
            start, _ = file.span(keyword)
            yield Edit(start, start + len((keyword.arg or "").encode()), name)


def last_argument(node: ast.Call, text: str, file: File) -> Edit:
    """The edit that adds a last argument to a call that has some."""
    end = file.span(node)[1] - 1
    before = file.source.data[file.span(node.func)[1] : end].rstrip()
    return Edit(end, end, f"{' ' if before.endswith(b',') else ', '}{text}")


def _same_place(their: str, meant: str, our: Parameter, place: int) -> bool:
    """Whether a positional argument means the operation's parameter at that place: the name says so, or it is a
    tensor's place.
    """
    if not their or meant == our.name or their == our.name:
        return True
    if our.role in ("TensorLike", "Indices", "Mask"):
        return meant not in ("axis", "dtype", "out", "shape")
    return our.kind == "P" or place == 0 or (our.name, their) in _SYNONYMS


_SYNONYMS = frozenset(
    {
        ("shape", "newshape"),
        ("shape", "size"),
        ("indices_or_sections", "sections"),
        ("pad_width", "pad_width"),
        ("axes", "dims"),
        ("axis1", "dim0"),
        ("axis2", "dim1"),
        ("n_rows", "n"),
        ("fill_value", "fill_value"),
        ("stop", "end"),
        ("num", "steps"),
        ("decimals", "decimals"),
    }
)


# Where function and operation differ for other inputs than the matrix is measured with: the parameters with which they
# do, or all calls. Arrays of no dimensions and an axis; complex arrays and a real dtype; numbers that do not fit; bools
# as indices; lists of arrays that are tuples on the other side; the order in which NumPy finds unique values; torch's
# own dtypes, sizes and errors.
_ALL = "*"
_LOOSE = {
    "numpy.broadcast_arrays": (_ALL,),
    "numpy.cumprod": ("axis", "dtype"),
    "numpy.cumsum": ("axis", "dtype"),
    "numpy.diff": ("n",),
    "numpy.dsplit": (_ALL,),
    "numpy.from_dlpack": (_ALL,),
    "numpy.full_like": (_ALL,),
    "numpy.hsplit": (_ALL,),
    "numpy.isreal": (_ALL,),
    "numpy.meshgrid": (_ALL,),
    "numpy.packbits": ("axis",),
    "numpy.pad": (_ALL,),
    "numpy.prod": ("dtype",),
    "numpy.squeeze": ("axis",),
    "numpy.sum": ("dtype",),
    "numpy.take": (_ALL,),
    "numpy.unique": ("axis",),
    "numpy.unique_values": (_ALL,),
    "numpy.unravel_index": (_ALL,),
    "numpy.vsplit": (_ALL,),
    "torch.bincount": (_ALL,),
    "torch.broadcast_shapes": (_ALL,),
    "torch.get_default_dtype": (_ALL,),
    "torch.unravel_index": (_ALL,),
}
_OF_ARRAYS = "safe, if all tensors are arrays"
_OF_NUMBERS = "safe, if all tensors are arrays, or the only one is made of numbers"
_TENSORS = frozenset({"TensorLike", "Indices", "Mask"})


def _safety(place: str, path: str, count: int, names: tuple[str | None, ...]) -> str:
    """Safe where the matrix in a file has established that function and operation agree for as many arguments and these
    keywords, given such arguments as it was measured with.
    """
    measured = matrix.native(path, place)
    if measured is None or not measured.get("errors"):
        return UNSAFE
    keywords = measured.get("keywords", {})
    if not all(keywords.get(name) for name in names):
        return UNSAFE
    if count > len(measured.get("parameters", ())) and measured.get("parameters") is not None:
        return UNSAFE
    if measured.get("same"):
        return _OF_NUMBERS
    if not count or not measured.get("arrays") or (count > 1 and not measured.get("mixed")):
        return UNSAFE
    return _OF_ARRAYS


def _is_measured(node: ast.expr, parameter: Parameter, numbers: bool, file: File) -> bool:
    """Whether an argument is of a kind that the matrix was measured with."""
    value = file.value(node)
    if parameter.role == "DTypeLike":
        return _is_dtype(node, file)
    if parameter.role not in _TENSORS:
        return _is_option(node, value, parameter)
    if value is None:
        return False
    if value.kind in ARRAYS:
        return not value.nullable and not any(_is_foreign(step.node) for step in value.chain())
    if not numbers:
        return False
    items = value.items if value.kind == SEQUENCE else (value,)
    return items is not None and all(item is not None and item.is_host for item in items)


def _is_option(node: ast.expr, value: Value | None, parameter: Parameter) -> bool:
    """Whether an option is written out, or known to be an integer, a bool, or integers where several may be given."""
    if value is None:
        return False
    if value.kind == STRING:
        return isinstance(node, ast.Constant)
    if value.kind == NONE:
        return parameter.default == "None"
    if value.kind == SCALAR:
        return value.dtype in ("int", "bool")
    items = value.items if isinstance(node, ast.Tuple) else None
    several = parameter.name != "axis" or parameter.default == "None"
    integers = value.kind == SHAPE or (items is not None and all(item is INT for item in items))
    return several and integers


def _is_dtype(node: ast.expr, file: File) -> bool:
    """Whether a dtype is one of ember's by its name, or NumPy's of the same name."""
    if isinstance(node, ast.Constant):
        return node.value is None or node.value in catalogue.dtypes()
    space, _, name = file.path(node).rpartition(".")
    return space in ("numpy", "torch", "ember_ml", "ember_ml.ops") and name in catalogue.dtypes()


def _is_foreign(node: ast.AST | None) -> bool:
    """Whether an array is made of something that no tensor holds: objects, text, dates, records."""
    if not isinstance(node, ast.Call):
        return False
    dtypes = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    dtypes += [argument for argument in node.args[1:] if isinstance(argument, ast.Name) or _is_text(argument)]
    if not all(map(_may_be_held, dtypes)):
        return True
    first = node.args[0] if node.args else None
    return isinstance(first, (ast.List, ast.Tuple)) and any(map(_is_text, ast.walk(first)))


# The dtypes of arrays that no tensor is.
_UNHELD = words("object object_ str str_ bytes bytes_ datetime64 timedelta64")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _may_be_held(node: ast.expr) -> bool:
    """Whether the text of a dtype may mean one of ember's."""
    if isinstance(node, ast.Constant):
        return node.value is None or node.value in catalogue.dtypes()
    last = dotted(node).rpartition(".")[2]
    return bool(last) and last not in _UNHELD
