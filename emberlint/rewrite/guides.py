"""What the pages for users of another library show: its calls, the operations that they become, and what differs."""

from __future__ import annotations

from typing import Any

from emberlint.knowledge import catalogue
from emberlint.knowledge.catalogue import Parameter
from emberlint.knowledge.returns import words
from emberlint.rewrite.arguments import DEFAULTS, NAMES, counterpart
from emberlint.rewrite.jax import ADVICE, TRANSFORMS
from emberlint.rewrite.names import ORDERED, difference, operation_for
from emberlint.rewrite.safety import TENSORS

# Options that no operation takes, so that rows do not name them: the pages do. They say where a result is stored, in
# which precision, or how it is compiled. An operation that has one of these names is compared as usual.
REFUSED = {
    "all": words("out where casting order subok signature"),
    "jax": words(
        """
        accuracy fill_value implementation indices_are_sorted method out_sharding precision preferred_element_type
        promote_integers sharding size symmetrize_input unique_indices unroll
        """
    ),
    "numpy": words("like"),
    "torch": words("driver generator inplace layout memory_format pin_memory requires_grad"),
}

# torch 2.13: functions that only raise an error, which names another.
_REMOVED = words("torch.eig torch.lstsq torch.matrix_rank torch.solve")

_ORDER = "elements on one side of the place may be in another order"
_NAN = "NaN of NaN, where torch returns 0"
_DTYPES = "returns dtypes of Ember ML, by its promotion table"
_SIGNS = "the signs of the vectors may be opposite to those of {}; they are the same on every engine"
_PHASES = "vectors may be those of {} times a complex number; they are the same on every engine"
_DRAWS = "other numbers, the same on every engine"
_NONZERO = "`x` and `y` are required: of a condition alone, use `ops.nonzero`"
_ALPHA = "for `alpha`, multiply by it first"
_QUOTIENT = "for `rounding_mode`, use `ops.floor_divide`, or `ops.trunc` of the quotient"
_NEGATIVE = "integers to a negative power raise in {}; ops rounds toward zero"
_COPY = "without it, ops shares memory where the engine allows it"
_TOLERANCE = "the default of `rtol` is that of the array API standard"
# What differs for some values or arguments of functions that are ported.
REMARKS = {
    "jax.nn.dot_product_attention": "JAX takes `bias` fourth; in ops `mask` is fourth: write `bias=`",
    "jax.numpy.argpartition": _ORDER,
    "jax.numpy.array": _COPY,
    "jax.numpy.linalg.eig": f"{ORDERED}; {_PHASES.format('JAX')}",
    "jax.numpy.linalg.eigh": _SIGNS.format("JAX"),
    "jax.numpy.linalg.eigvals": ORDERED,
    "jax.numpy.linalg.pinv": _TOLERANCE,
    "jax.numpy.linalg.qr": _SIGNS.format("JAX"),
    "jax.numpy.linalg.svd": _SIGNS.format("JAX"),
    "jax.numpy.promote_types": _DTYPES,
    "jax.numpy.result_type": _DTYPES,
    "jax.numpy.where": _NONZERO,
    "numpy.argpartition": _ORDER,
    "numpy.argsort": "stable by default",
    "numpy.array": _COPY,
    "numpy.ascontiguousarray": "numbers become 0-d tensors, not arrays with 1 element",
    "numpy.bitwise_count": "of negative integers, NumPy counts the bits of the absolute value",
    "numpy.geomspace": "with an integer dtype, NumPy cuts the fractions and ops rounds them",
    "numpy.linalg.eigh": _SIGNS.format("NumPy"),
    "numpy.linalg.pinv": _TOLERANCE,
    "numpy.linalg.qr": _SIGNS.format("NumPy"),
    "numpy.linalg.svd": _SIGNS.format("NumPy"),
    "numpy.partition": _ORDER,
    "numpy.pow": _NEGATIVE.format("NumPy"),
    "numpy.power": _NEGATIVE.format("NumPy"),
    "numpy.promote_types": _DTYPES,
    "numpy.random.gamma": "write `beta=`, which is the inverse of `scale`",
    "numpy.random.randint": "give both bounds",
    "numpy.reciprocal": "of integers, NumPy rounds toward zero; ops returns floats",
    "numpy.result_type": _DTYPES,
    "numpy.unique_values": "sorted",
    "numpy.where": _NONZERO,
    "torch.add": _ALPHA,
    "torch.argsort": "stable by default",
    "torch.div": _QUOTIENT,
    "torch.divide": _QUOTIENT,
    "torch.get_default_device": "returns a name",
    "torch.heaviside": _NAN,
    "torch.linalg.cond": "infinite for singular matrices, where torch returns NaN",
    "torch.linalg.eig": f"{ORDERED}; {_PHASES.format('torch')}",
    "torch.linalg.eigh": _SIGNS.format("torch"),
    "torch.linalg.eigvals": ORDERED,
    "torch.linalg.lstsq": "also returns the residuals and the singular values",
    "torch.linalg.qr": _SIGNS.format("torch"),
    "torch.linalg.solve": "vectors for a stack of matrices have the shape (..., n, 1)",
    "torch.linalg.solve_triangular": "write `lower=not upper`, and `unit_diagonal=` for `unitriangular`",
    "torch.linalg.svd": _SIGNS.format("torch"),
    "torch.log_softmax": "`dim` is `axis`; for `dtype`, cast the argument",
    "torch.nn.functional.dropout": "`p` is `rate`; write `training=`",
    "torch.nn.functional.gelu": '`approximate="tanh"` is `approximate=True`',
    "torch.nn.functional.huber_loss": "the target comes first",
    "torch.nn.functional.one_hot": "give `num_classes`",
    "torch.pinverse": "torch's `rcond` is 1e-15 by default; ops has `rtol`, by default that of the array API standard",
    "torch.pow": _NEGATIVE.format("torch"),
    "torch.qr": _SIGNS.format("torch"),
    "torch.repeat_interleave": "of `repeats` alone, write `ops.repeat(ops.arange(len(repeats)), repeats)`",
    "torch.searchsorted": '`right=True` is `side="right"`; for `out_int32`, cast the result',
    "torch.sgn": _NAN,
    "torch.sign": _NAN,
    "torch.special.logsumexp": "`dim` is `axis`; `keepdim` is `keepdims`; give `keepdims` by name",
    "torch.sub": _ALPHA,
    "torch.subtract": _ALPHA,
    "torch.tensor": _COPY,
    "torch.tensor_split": "give `indices` and `sections` by position",
    "torch.where": _NONZERO,
}


def renamed(engine: str) -> list[list[str]]:
    """Rows of an engine's functions that are called differently here: the call there, the call here, what differs."""
    rows = []
    for path in ported(engine):
        text, operation = remark(path), operation_for(path)
        if text:
            theirs, ours = catalogue.function(path) or {}, catalogue.operation(operation) or {}
            rows.append([_call(path, _names(theirs, engine)), _call(f"ops.{operation}", _names(ours)), text])
    if engine == "jax":
        rows += [
            [f"`{path}`", f"`ember_ml.{row.name}`", "import it from `ember_ml`"] for path, row in TRANSFORMS.items()
        ]
    return rows


def different(engine: str) -> list[list[str]]:
    """Rows of an engine's functions that are not ported, since the operation of that name means something else."""
    rows = []
    for path, record in _functions(engine).items():
        text = difference(path)
        if text:
            name = path.rpartition(".")[2]
            ours = catalogue.operation(name)
            place = "ops.random" if _is_draw(path) else "ops"
            rows.append([_call(path, _names(record, engine)), _call(f"{place}.{name}", _names(ours or {})), text])
    if engine == "jax":
        known = {path for path in _functions(engine) if difference(path)}
        rows += [[f"`{path}`", "", advice] for path, advice in ADVICE.items() if path not in known]
    return rows


def same(engine: str) -> dict[str, list[str]]:
    """Names in ``ops`` of the functions that are called in the same way here, by the module of an engine."""
    found: dict[str, list[str]] = {}
    for path in ported(engine):
        if not remark(path):
            found.setdefault(path.rpartition(".")[0], []).append(operation_for(path))
    return {module: sorted(set(names)) for module, names in found.items()}


def ported(engine: str) -> list[str]:
    """Functions of an engine that become operations."""
    return [path for path in _functions(engine) if operation_for(path) and not difference(path)]


def is_function_object(path: str) -> bool:
    """Whether a function is an object, of which only the parameters of all such objects are known: JAX's ufuncs."""
    rows = catalogue.parameters(catalogue.function(path) or {}) or []
    return bool(rows) and rows[0].kind == "V" and all(row.name in REFUSED["all"] for row in rows[1:])


def _is_draw(path: str) -> bool:
    """Whether a function draws random numbers."""
    return ".random." in path


def _functions(engine: str) -> dict[str, Any]:
    functions: dict[str, Any] = catalogue.load()["engines"][engine]["functions"]
    return {path: record for path, record in functions.items() if path not in _REMOVED}


def _names(record: dict[str, Any], engine: str = "all") -> list[str]:
    """Names of the parameters to show: without those that no operation has."""
    hidden = REFUSED["all"] | (REFUSED[engine] - {"fill_value", "size"})
    return [row.name for row in catalogue.parameters(record) or [] if row.kind != "W" and row.name not in hidden]


def _is_cast(theirs: list[Parameter]) -> bool:
    """Whether the dtype is one of the options for storage, as in all elementwise functions of NumPy."""
    return any(one.name == "casting" for one in theirs)


def _listed(names: list[str]) -> str:
    """Names with commas, and ``and`` before the last."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _call(path: str, names: list[str]) -> str:
    return f"`{path}({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})`" if names else f"`{path}`"


def remark(path: str) -> str:
    """What a reader has to change in a call of a function that becomes an operation; empty if nothing."""
    parts = []
    operation = operation_for(path)
    theirs = catalogue.parameters(catalogue.function(path) or {}) or []
    ours = catalogue.parameters(catalogue.operation(operation) or {}) or []
    if path.rpartition(".")[2] != operation.rpartition(".")[2]:
        parts.append("renamed")
    if not _is_draw(path):
        parts += _parameters(path, theirs, ours)
    name, value = DEFAULTS.get(path, ("", ""))
    if name:
        parts.append(f"write `{name}={value}` for their default" if value else f"give `{name}`")
    if path in REMARKS:
        parts.append(REMARKS[path])
    if _is_draw(path):
        if ours[0].name == "shape":
            is_size = any(one.name == "size" for one in theirs)
            parts.append("the shape comes first" + (", unless you write `size=`" if is_size else ""))
        parts += (["the key is the option `key=`"] if theirs[0].name == "key" else []) + [_DRAWS]
    return "; ".join(parts)


def _parameters(path: str, theirs: list[Parameter], ours: list[Parameter]) -> list[str]:
    """What to change in the arguments of a call: other names, options by name alone, and options that are refused."""
    refused = REFUSED["all"] | REFUSED[path.partition(".")[0]]
    by_name = frozenset(one.name for one in ours if one.kind in "BK")
    places = [one for one in ours if one.kind in "PB"]
    given = {one.name for one in theirs}
    is_ordered = True
    renamed, named, placed, absent = [], [], [], []
    for place, their in enumerate(theirs):
        at = places[place] if place < len(places) and their.kind in "PB" else None
        our = counterpart(path, their.name, by_name)
        if f"`{their.name}" in REMARKS.get(path, "") or their.name.startswith("_") or their.kind in "VW":
            continue
        is_alias = their.name in NAMES.get(path, {}) or (at is not None and at.name == our)
        if our in given - {their.name} and not is_alias:
            our = ""
        if not our and their.name in refused:
            is_ordered = False
        elif our:
            if our != their.name:
                renamed.append(f"`{their.name}` is `{our}`")
            if their.kind in "PB" and is_ordered and (at is None or at.name != our):
                named.append(f"`{our}`")
        elif their.default is not None or their.kind == "K":
            if at is not None and at.kind == "P" and their.kind == "B":
                placed.append(f"`{their.name}`")
            elif not (at is not None and at.role in TENSORS) and not (their.name == "dtype" and _is_cast(theirs)):
                absent.append(f"`{their.name}=`")
    parts = [*renamed]
    if named:
        parts.append(f"give {_listed(named)} by name")
    if placed:
        parts.append(f"give {_listed(placed)} by position")
    if absent:
        parts.append(f"{_listed(absent)} {'is' if len(absent) == 1 else 'are'} not accepted")
    return parts
