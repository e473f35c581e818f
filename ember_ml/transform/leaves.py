"""The leaves of arguments: the engine that they live on, the stateful ones, and the others as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import backend as _backends
from ember_ml import dispatch
from ember_ml import tree as _tree
from ember_ml.backend import Backend, protocol
from ember_ml.dtypes import with_article
from ember_ml.transform.captures import is_stateful


def home_of(name: str, first: Any, others: Any) -> Backend:
    """The engine that the tensors live on: those to differentiate with respect to, or else any; else the active one."""
    for tree, is_theirs in ((first, False), (first, True), (others, False), (others, True)):
        home: Backend | None = None
        for x in _samples(tree, is_theirs):
            owner = x.home if dispatch.holds_wrapped((x,)) else dispatch.classify(type(x))
            if isinstance(owner, Backend) and owner is not home:
                if home is not None and owner.chosen_as == home.chosen_as:
                    # What is traced, and arrays with it.
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
    """The leaves, with one tensor of each stateful one in its place.

    Args:
        is_theirs: those alone that write into tensors of their own, or those alone that do not. An optimiser that is
            asked for its tensors will copy them first, so that it is asked last.
    """
    leaves = [leaf for leaf in _tree.leaves(tree) if is_writing(leaf) == is_theirs]
    return [next(iter(leaf.tensors().values()), None) if is_stateful(leaf) else leaf for leaf in leaves]


def is_writing(leaf: Any) -> bool:
    """Whether ``leaf`` is stateful and may write into its tensors: those it knows to be its own."""
    return hasattr(type(leaf), "own") and is_stateful(leaf)


def states(tree: Any) -> list[Any]:
    """The stateful leaves, each once."""
    found: list[Any] = []
    for leaf in _tree.leaves(tree):
        if is_stateful(leaf) and not any(leaf is other for other in found):
            found.append(leaf)
    return found


def parameters(state: Any, name: str) -> dict[str, Any]:
    """The trainable tensors of a stateful leaf, by path."""
    found = getattr(state, "parameters", None)
    if found is None:
        raise TypeError(
            f"{name}: a model to differentiate with respect to must have parameters, got "
            f"{with_article(type(state).__name__)} without"
        )
    return found()  # type: ignore[no-any-return]


def engine_of(home: Backend, name: str) -> Any:
    """How an engine transforms functions of flat lists of tensors, for the transform of that name."""
    found = _backends.submodule(home.module, "transform")
    if found is None:
        raise home.lacks(name, "transform")
    lacking = [member for member in _MEMBERS if not hasattr(found, member)]
    if lacking:
        raise TypeError(f"{name}: {found.__name__} must define {', '.join(lacking)}")
    return found


_MEMBERS = tuple(protocol.members(protocol.Transform))


def has_compiler(home: Backend) -> bool:
    """Whether an engine compiles functions; without one, ``compile`` runs them as they are."""
    return hasattr(_backends.submodule(home.module, "transform"), "compiled")


def as_tensor(home: Backend, value: Any, beside: Sequence[Any]) -> Any:
    """A tensor, host array or number as a tensor of ``home``; ``None`` if it is none of these."""
    kinds: Any = home.kinds
    value = dispatch.unwrap(value)
    if isinstance(value, kinds):
        return value
    owner = dispatch.classify(type(value))
    if owner not in (dispatch.NUMBER, dispatch.HOST):
        return None
    return home.convert(value, None, home.device_like(beside[0]) if beside else home.device)
