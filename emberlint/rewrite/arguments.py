"""Matching of a call's arguments to the parameters of an operation."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from emberlint.findings import UNSAFE
from emberlint.knowledge import catalogue
from emberlint.knowledge.catalogue import Parameter
from emberlint.rewrite.names import agrees, difference, operation_for
from emberlint.rewrite.safety import is_loose, measured_safety

# Parameters that engines and the array API standard name differently.
_KEYWORDS = {
    "M": "n_cols",
    "N": "n_rows",
    "a_max": "max",
    "a_min": "min",
    "body_fun": "body",
    "ddof": "correction",
    "dim": "axis",
    "dim1": "axis1",
    "dim2": "axis2",
    "dimension": "axis",
    "dimensions": "axis",
    "dims": "axes",
    "false_fun": "false_fn",
    "init_val": "init",
    "keepdim": "keepdims",
    "lower": "low",
    "m": "n_cols",
    "maxval": "high",
    "minval": "low",
    "new_dtype": "dtype",
    "new_sizes": "shape",
    "permutation": "axes",
    "true_fun": "true_fn",
    "upper": "high",
}


# Parameters of single functions that the operation names differently.
_LAMBDA = {"lambd": "threshold"}
_SWAPPED = {"dim0": "axis1", "dim1": "axis2"}
NAMES = {
    "jax.lax.associative_scan": {"fn": "f"},
    "jax.numpy.ravel_multi_index": {"dims": "shape"},
    "jax.random.choice": {"a": "x"},
    "jax.random.gamma": {"a": "alpha"},
    "numpy.ravel_multi_index": {"dims": "shape"},
    "numpy.linalg.pinv": {"rcond": "rtol"},
    "torch.diag": {"diagonal": "k"},
    "torch.diagflat": {"offset": "k"},
    "torch.hardshrink": _LAMBDA,
    "torch.linalg.solve_triangular": {"unitriangular": "unit_diagonal"},
    "torch.nn.functional.hardshrink": _LAMBDA,
    "torch.nn.functional.normalize": {"eps": "epsilon"},
    "torch.nn.functional.softshrink": _LAMBDA,
    "torch.roll": {"shifts": "shift"},
    "torch.set_default_device": {"device": "name"},
    "torch.swapaxes": {"axis0": "axis1", "axis1": "axis2"},
    "torch.swapdims": _SWAPPED,
    "torch.transpose": _SWAPPED,
    "torch.tril": {"diagonal": "k"},
    "torch.triu": {"diagonal": "k"},
    "torch.while_loop": {"cond_fn": "cond", "body_fn": "body", "carried_inputs": "loop_vars"},
}

# The matrices of engines are in the first two axes, those of the operations in the last two.
_FIRST_AXES = ("axis1", "0, axis2=1")

# Parameters with a different default: the value to write out, or an empty string if the call cannot be rewritten.
DEFAULTS = {
    **{f"{place}.diagonal": _FIRST_AXES for place in ("jax.numpy", "mlx.core", "numpy", "torch")},
    **{f"{place}.trace": _FIRST_AXES for place in ("jax.numpy", "mlx.core", "numpy")},
    "jax.lax.cumprod": ("axis", "0"),
    "jax.lax.cumsum": ("axis", "0"),
    "jax.nn.gelu": ("approximate", "True"),
    "jax.numpy.array": ("copy", "True"),
    # Without a shape, it is that of the parameters.
    **{f"jax.random.{name}": ("shape", "") for name in ("bernoulli", "beta", "dirichlet", "gamma", "poisson")},
    "jax.scipy.special.log_softmax": ("axis", "None"),
    "jax.scipy.special.softmax": ("axis", "None"),
    "mlx.core.put_along_axis": ("axis", ""),
    "mlx.core.random.categorical": ("num_samples", ""),
    "mlx.core.softmax": ("axis", "None"),
    "numpy.array": ("copy", "True"),
    "torch.cosine_similarity": ("axis", "1"),
    "torch.nn.functional.cosine_similarity": ("axis", "1"),
    "torch.nn.functional.log_softmax": ("axis", ""),
    "torch.nn.functional.normalize": ("axis", "1"),
    "torch.nn.functional.one_hot": ("dtype", '"int64"'),
    "torch.nn.functional.softmax": ("axis", ""),
    "torch.take_along_dim": ("axis", ""),
    "torch.tensor": ("copy", "True"),
}


class Plan(NamedTuple):
    """Rewrite of all calls of a function with the same number of arguments and the same keywords."""

    operation: str
    changes: tuple[tuple[int, str], ...]
    safety: str
    places: tuple[Parameter, ...]
    missing: str


@cache
def planned(path: str, count: int, names: tuple[str | None, ...], place: str) -> Plan | None:
    """Rewrite of such a call, with the matrix at ``place``; ``None`` if it cannot be rewritten."""
    changes = _matched(path, count, names)
    if changes is None:
        return None
    places = _places(path, count, names, changes)
    if path == "torch.nn.functional.gelu" and any(parameter.name == "approximate" for parameter in places):
        return None  # torch has a string, the operation a bool
    name, value = DEFAULTS.get(path, ("", ""))
    left_out = name != "" and all(parameter.name != name for parameter in places)
    if left_out and not value:
        return None
    is_unsure = left_out or is_loose(path, (parameter.name for parameter in places))
    safety = UNSAFE if is_unsure else measured_safety(place, path, count, names)
    return Plan(operation_for(path), changes, safety, places, f"{name}={value}" if left_out else "")


class _Signatures(NamedTuple):
    """Positional parameters of a function, and the parameters of its operation: positional, by keyword, required."""

    theirs: tuple[str, ...]
    positional: tuple[Parameter, ...]
    variadic: bool
    by_name: frozenset[str]
    required: frozenset[str]


@cache
def _signatures(path: str) -> _Signatures | None:
    """Parameters of a function and of its operation; ``None`` if there is no equivalent operation."""
    operation = operation_for(path)
    record = catalogue.operation(operation) if operation else None
    if record is None:
        return None
    native = catalogue.function(path)
    theirs = (catalogue.parameters(native) if native else None) or []
    renamed = NAMES.get(path, {})
    ours = catalogue.parameters(record) or []
    return _Signatures(
        tuple(renamed.get(parameter.name, parameter.name) for parameter in theirs if parameter.kind in "PB"),
        tuple(parameter for parameter in ours if parameter.kind in "PB"),
        any(parameter.kind == "V" for parameter in ours),
        frozenset(parameter.name for parameter in ours if parameter.kind in "BK"),
        frozenset(parameter.name for parameter in ours if parameter.kind in "PBK" and parameter.default is None),
    )


def _matched(path: str, count: int, names: tuple[str | None, ...]) -> tuple[tuple[int, str], ...] | None:
    """Position and new keyword of each argument that needs one for the operation; ``None`` if one does not match.

    ``count`` arguments are positional, the others have the keywords ``names``.
    """
    signatures = _signatures(path)
    if signatures is None or None in names or (difference(path) and not agrees(path.rpartition(".")[2], count, names)):
        return None
    theirs, positional, variadic, by_name, required = signatures
    changes: list[tuple[int, str]] = []
    given: set[str] = set()
    for i in range(count):
        their = theirs[i] if i < len(theirs) else ""
        meant = _meant(their, by_name)
        elsewhere = their in by_name and i < len(positional) and positional[i].name != their
        if not changes and not elsewhere and i < len(positional) and _same_place(their, meant, positional[i], i):
            given.add(positional[i].name)
        elif not changes and variadic and i >= len(positional):
            continue
        elif meant in by_name and meant not in given:
            changes.append((i, meant))
            given.add(meant)
        else:
            return None
    for i, name in enumerate(names, count):
        meant = counterpart(path, name or "", by_name)
        if meant not in by_name or meant in given:
            return None
        if meant != name:
            changes.append((i, meant))
        given.add(meant)
    return tuple(changes) if required <= given else None


def missing_parameters(path: str, count: int, names: tuple[str | None, ...]) -> list[str]:
    """Names of a call's arguments that the operation for a function has no parameter for."""
    signatures = _signatures(path)
    if signatures is None:
        return []
    places = frozenset(parameter.name for parameter in signatures.positional)
    given = [*signatures.theirs[len(places) : count], *(name for name in names if name)]
    return [name for name in given if not counterpart(path, name, signatures.by_name | places)]


def counterpart(path: str, their: str, by_name: frozenset[str]) -> str:
    """Name of the operation's parameter for a parameter of a function; empty if it has none."""
    name = NAMES.get(path, {}).get(their, their)
    meant = _meant(name, by_name)
    if meant in by_name:
        return meant
    return next((our for our, other in sorted(_SYNONYMS) if other == name and our in by_name), "")


def _meant(their: str, by_name: frozenset[str]) -> str:
    """Name of the operation's parameter; torch's ``dims`` is ``axes`` or ``axis``."""
    if their in by_name:
        return their
    meant = _KEYWORDS.get(their, their)
    return "axis" if meant == "axes" and "axes" not in by_name else meant


def _places(
    path: str, count: int, names: tuple[str | None, ...], changes: tuple[tuple[int, str], ...]
) -> tuple[Parameter, ...]:
    """Parameter of the operation for each argument of a matched call."""
    record = catalogue.operation(operation_for(path)) or {}
    ours = catalogue.parameters(record) or []
    by_name = {parameter.name: parameter for parameter in ours}
    by_place = [parameter for parameter in ours if parameter.kind in "PBV"]
    called = {**dict(enumerate(names, count)), **dict(changes)}
    found = [by_name[name] if (name := called.get(i)) else by_place[min(i, len(by_place) - 1)] for i in range(count)]
    return (*found, *(by_name[called[i] or ""] for i in range(count, count + len(names))))


def _same_place(their: str, meant: str, our: Parameter, place: int) -> bool:
    """Whether a positional argument matches the operation's parameter at the same position.

    The names must agree, or the parameter must be a tensor. If the function's parameters are not known as far as that,
    only the first, and those that the operation takes by position alone, are at the same one: torch's third argument of
    ``sum`` is ``keepdim``, ours ``dtype``.
    """
    if meant == our.name or their == our.name:
        return True
    if not their and our.kind != "P" and place:
        return False
    if our.role in ("TensorLike", "Indices", "Mask"):
        return meant not in ("axis", "dtype", "out", "shape")
    return our.kind == "P" or place == 0 or (our.name, their) in _SYNONYMS


_SYNONYMS = frozenset(
    {
        ("body", "body_fun"),
        ("false_fn", "false_fun"),
        ("init", "init_val"),
        ("shape", "newshape"),
        ("shape", "new_sizes"),
        ("shape", "size"),
        ("indices_or_sections", "sections"),
        ("pad_width", "pad_width"),
        ("axes", "dim"),
        ("axes", "dims"),
        ("axis1", "dim0"),
        ("axis2", "dim1"),
        ("n_rows", "n"),
        ("fill_value", "fill_value"),
        ("stop", "end"),
        ("true_fn", "true_fun"),
        ("num", "steps"),
        ("decimals", "decimals"),
    }
)
