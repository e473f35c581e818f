"""Leaves of arguments: their engine, the stateful ones, and conversion of the others to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import backend as _backends
from ember_ml import dispatch
from ember_ml import tree as _tree
from ember_ml.backend import Backend, protocol
from ember_ml.dtypes import with_article
from ember_ml.transform.captures import is_stateful


def find_backend(name: str, first: Any, others: Any) -> Backend:
    """Engine of the tensors in ``first``; if there are none, of those in ``others``, or else the active engine."""
    for tree, is_theirs in ((first, False), (first, True), (others, False), (others, True)):
        home: Backend | None = None
        for x in _samples(tree, is_theirs):
            owner = x.home if dispatch.holds_wrapped((x,)) else dispatch.classify(type(x))
            if isinstance(owner, Backend) and owner is not home:
                if home is not None and owner.chosen_as == home.chosen_as:
                    # Arrays that NumPy records for gradients may be mixed with plain arrays.
                    home = owner if owner.name in _backends.HIDDEN else home
                elif home is not None and tree is first:
                    raise TypeError(
                        f"{name}: tensors must be of one engine, got {home.chosen_as} and {owner.chosen_as}; "
                        "ember_ml.ops.convert_to_tensor(x) moves either to the active backend"
                    )
                home = home or owner
        if home is not None:
            return home
    return _backends.current()


def _samples(tree: Any, is_theirs: bool) -> list[Any]:
    """Leaves, with one tensor in place of each stateful leaf.

    Args:
        is_theirs: return only leaves that write into their tensors in place, or only the others. An optimizer copies
            its tensors after they were read, so it is read last.
    """
    leaves = [leaf for leaf in _tree.leaves(tree) if is_writing(leaf) == is_theirs]
    return [next(iter(leaf.tensors().values()), None) if is_stateful(leaf) else leaf for leaf in leaves]


def is_writing(leaf: Any) -> bool:
    """Whether ``leaf`` is stateful and may write into its tensors in place."""
    return hasattr(type(leaf), "copy_shared_state") and is_stateful(leaf)


def states(tree: Any) -> list[Any]:
    """Stateful leaves, without duplicates."""
    found: list[Any] = []
    for leaf in _tree.leaves(tree):
        if is_stateful(leaf) and not any(leaf is other for other in found):
            found.append(leaf)
    return found


def parameters(state: Any, name: str) -> dict[str, Any]:
    """Trainable tensors of a stateful leaf, by path."""
    found = getattr(state, "parameters", None)
    if found is None:
        raise TypeError(
            f"{name}: a model to differentiate with respect to must have parameters, got "
            f"{with_article(type(state).__name__)} without"
        )
    return found()  # type: ignore[no-any-return]


def engine_of(home: Backend, name: str) -> Any:
    """Module that implements the transforms of an engine on flat lists of tensors."""
    found = _backends.submodule(home.module, "transform")
    if found is None:
        raise home.lacks(name, "transform")
    lacking = [member for member in _MEMBERS if not hasattr(found, member)]
    if lacking:
        raise TypeError(f"{name}: {found.__name__} must define {', '.join(lacking)}")
    return found


_MEMBERS = tuple(protocol.members(protocol.Transform))


def has_compiler(home: Backend) -> bool:
    """Whether the compiler of an engine traces Python, as that of torch does."""
    return hasattr(_backends.submodule(home.module, "transform"), "compiled")


def can_compile(home: Backend) -> bool:
    """Whether an engine has a compiler, of Python or of functions of tensors."""
    return has_compiler(home) or hasattr(_backends.submodule(home.module, "transform"), "compiled_flat")


def as_tensor(home: Backend, value: Any, like: Sequence[Any]) -> Any:
    """Tensor, host array or number as a tensor of ``home`` on the device of ``like[0]``; ``None`` for other values."""
    kinds: Any = home.kinds
    value = dispatch.unwrap(value)
    if isinstance(value, kinds):
        return value
    owner = dispatch.classify(type(value))
    if owner not in (dispatch.NUMBER, dispatch.HOST):
        return None
    return home.convert(value, None, home.device_like(like[0]) if like else home.device)
