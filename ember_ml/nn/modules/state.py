"""Loading of a model's state: all tensors are converted and checked before any is assigned."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import ops
from ember_ml.dtypes import describe, written
from ember_ml.extend import activate, backend_of, current_backend, unwrap
from ember_ml.types import Tensor

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module


class Keys(NamedTuple):
    """Paths of the model that a loaded state does not have, and paths of the state that the model does not have."""

    missing: list[str]
    unexpected: list[str]


def load_state(module: Module, state: Mapping[str, Any], strict: bool) -> Keys:
    """Implementation of ``Module.load_state_dict``.

    >>> from ember_ml.nn.modules import Linear
    >>> load_state(Linear(1, 2), {"bias": [0.5, 0.25]}, strict=False)
    Keys(missing=['weight'], unexpected=[])
    """
    if not isinstance(state, Mapping):
        hint = "; load(path) reads one from a file" if isinstance(state, (str, PathLike)) else ""
        hint = "; state_dict() of that model is one" if hasattr(state, "state_dict") else hint
        raise TypeError(
            f"{type(module).__name__}: state must be a dictionary from path to tensor, got {written(state)}{hint}"
        )
    own = module.state_dict()
    firsts = module.layout().ties
    # One of its paths is enough for a tied tensor.
    present = {firsts.get(path, path) for path in state}
    keys = Keys(
        [path for path in own if firsts.get(path, path) not in present],
        [path for path in state if path not in own and not _is_ignored(module, path)],
    )
    loaded: dict[str, Tensor] = {}
    wrong: list[str] = []
    for path, old in own.items():
        if path in state:
            try:
                new = _converted(state[path], old)
            except Exception as error:
                error.add_note(f"in the state for {path!r} of {type(module).__name__}")
                raise
            loaded[path] = new
            if tuple(new.shape) != tuple(old.shape):
                wrong.append(f"  {path}: {list(new.shape)} where the model has {list(old.shape)}")
    complaints = [f"missing: {', '.join(keys.missing)}"] if strict and keys.missing else []
    complaints += [f"unexpected: {', '.join(keys.unexpected)}"] if strict and keys.unexpected else []
    complaints += ["wrong shape:", *wrong] if wrong else []
    complaints += [
        f"{first} and {path} are tied, and differ in the state"
        for path, first in firsts.items()
        if not wrong and path in loaded and first in loaded and not _are_equal(loaded[path], loaded[first])
    ]
    if complaints:
        raise ValueError("\n".join([f"{type(module).__name__}: state must fit the module", *complaints]))
    module.assign(loaded)
    return keys


def _is_ignored(module: Module, path: str) -> bool:
    """Whether a path that the module does not have is one that its layer ignores."""
    prefix, _, name = path.rpartition(".")
    layer = module.layout().modules.get(prefix)
    return layer is not None and name in layer._ignored_in_states


def _are_equal(one: Any, other: Any) -> bool:
    same = ops.array_equal(one, other, equal_nan=True)
    return bool(same)  # emberlint: ignore[EMB201] a state is checked before it is loaded


def _converted(value: Any, old: Any) -> Any:
    """Copy of ``value`` on the engine and device of ``old``, in the dtype of ``old``."""
    backend = backend_of(old) or current_backend()
    with activate(backend):
        new = ops.asarray(unwrap(value))
        if ops.is_complex(new) and not ops.is_complex(old):
            raise TypeError(f"values must be real, got complex ones for {describe(old)}")
        return ops.asarray(new, dtype=old.dtype, device=backend.device_of(old), copy=True)
