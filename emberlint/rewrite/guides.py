"""What the pages for users of another library show: its calls, the operations that they become, and what differs."""

from __future__ import annotations

from typing import Any

from emberlint.knowledge import catalogue
from emberlint.knowledge.returns import words
from emberlint.rewrite.arguments import DEFAULTS
from emberlint.rewrite.jax import ADVICE, TRANSFORMS
from emberlint.rewrite.names import difference, operation_for

# Parameters that say where or how a result is stored; operations have none of them, and none is needed.
_STORAGE = words("out where casting order subok signature extobj requires_grad pin_memory layout generator")

# torch 2.13: functions that only raise an error, which names another.
_REMOVED = words("torch.lstsq torch.matrix_rank torch.solve")

_ORDER = "elements on one side of the place may be in another order"
_NAN = "NaN of NaN, where torch returns 0"
_DTYPES = "returns dtypes of Ember ML, by its promotion table"
_SIGNS = "vectors have signs that are the same on every engine"
_EIGENVALUES = "conjugate eigenvalues may be in another order"
_DRAWS = "other numbers, the same on every engine"
# What differs for some values or arguments of functions that are ported.
REMARKS = {
    "jax.numpy.argpartition": _ORDER,
    "jax.numpy.linalg.eigh": _SIGNS,
    "jax.numpy.linalg.qr": _SIGNS,
    "jax.numpy.linalg.svd": _SIGNS,
    "jax.numpy.promote_types": _DTYPES,
    "jax.numpy.result_type": _DTYPES,
    "numpy.argpartition": _ORDER,
    "numpy.argsort": "stable by default",
    "numpy.ascontiguousarray": "numbers become 0-d tensors, not arrays with 1 element",
    "numpy.bitwise_count": "of negative integers, NumPy counts the bits of the absolute value",
    "numpy.geomspace": "with an integer dtype, NumPy cuts the fractions and ops rounds them",
    "numpy.linalg.eigh": _SIGNS,
    "numpy.linalg.qr": _SIGNS,
    "numpy.linalg.svd": _SIGNS,
    "numpy.partition": _ORDER,
    "numpy.promote_types": _DTYPES,
    "numpy.random.gamma": "write `beta=`, which is the inverse of `scale`",
    "numpy.random.randint": "give both bounds",
    "numpy.result_type": _DTYPES,
    "numpy.unique_values": "sorted",
    "torch.get_default_device": "returns a name",
    "torch.heaviside": _NAN,
    "torch.linalg.cond": "infinite for singular matrices, where torch returns NaN",
    "torch.linalg.eig": f"{_EIGENVALUES}; {_SIGNS}",
    "torch.linalg.eigh": _SIGNS,
    "torch.linalg.eigvals": _EIGENVALUES,
    "torch.linalg.lstsq": "also returns the residuals and the singular values",
    "torch.linalg.qr": _SIGNS,
    "torch.linalg.solve": "vectors for a stack of matrices have the shape (..., n, 1)",
    "torch.linalg.svd": _SIGNS,
    "torch.nn.functional.dropout": "`p` is `rate`; write `training=`",
    "torch.nn.functional.huber_loss": "the target comes first",
    "torch.pinverse": "torch's `rcond` is 1e-15 by default; ops has `rtol`, by default that of the array API standard",
    "torch.qr": _SIGNS,
    "torch.sgn": _NAN,
    "torch.sign": _NAN,
}


def renamed(engine: str) -> list[list[str]]:
    """Rows of an engine's functions that are called differently here: the call there, the call here, what differs."""
    rows = []
    for path, record in _functions(engine).items():
        operation = operation_for(path)
        if operation and not difference(path):
            theirs, ours = _names(record), _names(catalogue.operation(operation) or {})
            remark = _remark(path, operation, theirs, ours)
            if remark:
                rows.append([_call(path, theirs), _call(f"ops.{operation}", ours), remark])
    if engine == "jax":
        rows += [
            [f"`{path}`", f"`ember_ml.{row.name}`", "import it from `ember_ml`"] for path, row in TRANSFORMS.items()
        ]
    return rows


def different(engine: str) -> list[list[str]]:
    """Rows of an engine's functions that are not ported, since the operation of that name means something else."""
    rows = []
    for path, record in _functions(engine).items():
        remark = difference(path)
        if remark:
            name = path.rpartition(".")[2]
            ours = catalogue.operation(name)
            place = "ops.random" if _is_draw(path) else "ops"
            rows.append([_call(path, _names(record)), _call(f"{place}.{name}", _names(ours or {})), remark])
    if engine == "jax":
        known = {path for path in _functions(engine) if difference(path)}
        rows += [[f"`{path}`", "", advice] for path, advice in ADVICE.items() if path not in known]
    return rows


def same(engine: str) -> dict[str, list[str]]:
    """Names in ``ops`` of the functions that are called in the same way here, by the module of an engine."""
    found: dict[str, list[str]] = {}
    for path, record in _functions(engine).items():
        operation = operation_for(path)
        if operation and not difference(path):
            ours = _names(catalogue.operation(operation) or {})
            if not _remark(path, operation, _names(record), ours):
                found.setdefault(path.rpartition(".")[0], []).append(operation)
    return {module: sorted(set(names)) for module, names in found.items()}


def _is_draw(path: str) -> bool:
    """Whether a function draws random numbers."""
    return ".random." in path


def _functions(engine: str) -> dict[str, Any]:
    functions: dict[str, Any] = catalogue.load()["engines"][engine]["functions"]
    return {path: record for path, record in functions.items() if path not in _REMOVED}


def _names(record: dict[str, Any]) -> list[str]:
    """Names of the parameters that a caller gives, without those for storage."""
    rows = catalogue.parameters(record) or []
    return [row.name for row in rows if row.kind != "W" and row.name not in _STORAGE]


def _call(path: str, names: list[str]) -> str:
    return f"`{path}({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})`" if names else f"`{path}`"


def _remark(path: str, operation: str, theirs: list[str], ours: list[str]) -> str:
    """What a reader has to change in a call; empty if nothing."""
    parts = []
    if path.rpartition(".")[2] != operation.rpartition(".")[2]:
        parts.append("renamed")
    for old, new in (("dim", "axis"), ("dims", "axis"), ("keepdim", "keepdims"), ("ddof", "correction")):
        if old in theirs and new in ours and old not in ours:
            parts.append(f"`{old}` is `{new}`")
    name, value = DEFAULTS.get(path, ("", ""))
    if name:
        parts.append(f"write `{name}={value}` for their default" if value else f"give `{name}`")
    if path in REMARKS:
        parts.append(REMARKS[path])
    if _is_draw(path):
        if ours[0] == "shape":
            parts.append("the shape comes first" + (", unless you write `size=`" if "size" in theirs else ""))
        parts += (["the key is the option `key=`"] if theirs[0] == "key" else []) + [_DRAWS]
    return "; ".join(parts)
