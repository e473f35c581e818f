"""Nested containers of values: dictionaries, lists and tuples within one another.

Anything else is a leaf, ``None`` included. Named tuples keep their type; other subclasses become the plain container.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

# A tensor, or tensors in nested containers. Operations take it as it is.
Tree: TypeAlias = Any

_CONTAINERS = (dict, list, tuple)


def leaves(tree: Tree) -> list[Any]:
    """The leaves of ``tree``, from left to right; those of dictionaries in the order of insertion.

    >>> leaves({"a": 1, "b": [2, (3,)]})
    [1, 2, 3]
    """
    if isinstance(tree, dict):
        return [leaf for child in tree.values() for leaf in leaves(child)]
    if isinstance(tree, (list, tuple)):
        return [leaf for child in tree for leaf in leaves(child)]
    return [tree]


def unflatten(tree: Tree, values: Sequence[Any]) -> Tree:
    """The containers of ``tree`` with ``values`` in place of its leaves.

    >>> unflatten({"a": 1, "b": [2, (3,)]}, "xyz")
    {'a': 'x', 'b': ['y', ('z',)]}
    """
    rest = iter(values)
    return map(lambda _: next(rest), tree)


def map(f: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """The containers of ``tree`` with ``f`` of its leaves, and of those of the others at the same place.

    >>> map(max, {"a": 1, "b": [5]}, {"b": [2], "a": 3})
    {'a': 3, 'b': [5]}
    """
    if not (isinstance(tree, _CONTAINERS) or any(isinstance(other, _CONTAINERS) for other in others)):
        return f(tree, *others)
    for other in others:
        _check_alike(tree, other)
    if isinstance(tree, dict):
        return {key: map(f, child, *(other[key] for other in others)) for key, child in tree.items()}
    children = [map(f, child, *(other[i] for other in others)) for i, child in enumerate(tree)]
    if isinstance(tree, list):
        return children
    return type(tree)(*children) if hasattr(tree, "_fields") else tuple(children)


def places(tree: Tree, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each leaf with the keys and positions that lead to it.

    >>> list(places({"a": 1, "b": [2]}))
    [(('a',), 1), (('b', 0), 2)]
    """
    if isinstance(tree, dict):
        for key, child in tree.items():
            yield from places(child, (*path, key))
    elif isinstance(tree, (list, tuple)):
        for i, child in enumerate(tree):
            yield from places(child, (*path, i))
    else:
        yield path, tree


def _check_alike(tree: Tree, other: Tree) -> None:
    """Both are leaves, or containers of one kind with the same keys or length."""
    for kind in _CONTAINERS:
        if isinstance(tree, kind) != isinstance(other, kind):
            raise ValueError(f"the structure changed: a {_kind(other)} where there was a {_kind(tree)}")
    if isinstance(tree, dict) and tree.keys() != other.keys():
        raise ValueError(f"the structure changed: keys {list(other)} where there were {list(tree)}")
    if isinstance(tree, (list, tuple)) and len(tree) != len(other):
        raise ValueError(f"the structure changed: {len(other)} values where there were {len(tree)}")


def _kind(tree: Tree) -> str:
    return type(tree).__name__ if isinstance(tree, _CONTAINERS) else "leaf"
