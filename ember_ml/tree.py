"""Trees: nested dictionaries, lists and tuples.

Everything else is a leaf, including ``None``. Named tuples keep their type; instances of other subclasses become plain
containers.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

from ember_ml.dtypes import with_article

# A tensor, or tensors in nested containers.
Tree: TypeAlias = Any

_CONTAINERS = (dict, list, tuple)


def leaves(tree: Tree) -> list[Any]:
    """Leaves of ``tree`` from left to right; those of dictionaries in insertion order.

    >>> leaves({"a": 1, "b": [2, (3,)]})
    [1, 2, 3]
    """
    if not isinstance(tree, _CONTAINERS):
        return [tree]
    found: list[Any] = []
    try:
        _collect(tree, found)
    except RecursionError:
        depth(tree)
        raise
    return found


def _collect(container: Tree, found: list[Any]) -> None:
    for child in container.values() if isinstance(container, dict) else container:
        if isinstance(child, _CONTAINERS):
            _collect(child, found)
        else:
            found.append(child)


def unflatten(tree: Tree, values: Sequence[Any]) -> Tree:
    """Tree with the containers of ``tree`` and ``values`` as leaves.

    >>> unflatten({"a": 1, "b": [2, (3,)]}, "xyz")
    {'a': 'x', 'b': ['y', ('z',)]}
    """
    rest = iter(values)
    return map(lambda _: next(rest), tree)


def map(f: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Tree with the containers of ``tree``, whose leaves are ``f`` of the leaves of ``tree`` and ``others``.

    Args:
        f: function of one leaf of each tree.
        tree: the tree that determines the structure.
        *others: trees of the same structure.

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
    """Leaves with their paths: the keys and positions that lead to them.

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


# Number of items above which duplicate containers are removed.
_MANY = 1 << 20


def contents(containers: Sequence[Any], with_dicts: bool = True) -> list[Any]:
    """Items of the containers, concatenated; the values of dictionaries.

    A container that occurs several times may be counted once. Otherwise the items of a list that holds itself twice
    would double on each level, and exhaust memory.

    Args:
        with_dicts: whether there may be dictionaries among the containers. Checking for them takes time.

    >>> contents([[1, 2], {"a": [3]}])
    [1, 2, [3]]
    """
    if len(containers) > 1 and (containers[0] is containers[-1] or sum(builtins.map(len, containers)) > _MANY):
        containers = list({id(one): one for one in containers}.values())
    if with_dicts and any(issubclass(kind, dict) for kind in set(builtins.map(type, containers))):
        containers = [one.values() if isinstance(one, dict) else one for one in containers]
    return list(chain.from_iterable(containers))


def depth(tree: Tree) -> int:
    """Number of containers around the innermost leaf. A tree that contains itself is a ``ValueError``.

    >>> depth({"a": 1, "b": [2, (3,)]})
    3
    """
    depths: dict[int, int] = {}
    # Containers around the one at the top of the stack.
    path: set[int] = set()
    stack = [tree] if isinstance(tree, _CONTAINERS) else []
    while stack:
        container = stack[-1]
        inner = [child for child in contents([container]) if isinstance(child, _CONTAINERS)]
        if id(container) in depths:
            stack.pop()
        elif id(container) in path:
            depths[id(container)] = 1 + max((depths[id(child)] for child in inner), default=0)
            path.remove(id(container))
        else:
            path.add(id(container))
            if any(id(child) in path for child in inner):
                raise ValueError(f"a nested sequence must not contain itself, got a {_kind(container)} that does")
            stack += inner
    return depths.get(id(tree), 0)


def _check_alike(tree: Tree, other: Tree) -> None:
    """Raise an error unless both are leaves, or containers of one type with the same keys or length."""
    for kind in _CONTAINERS:
        if isinstance(tree, kind) != isinstance(other, kind):
            raise ValueError(
                f"the structure must stay the same, got {with_article(_kind(other))} for {with_article(_kind(tree))}"
            )
    if isinstance(tree, dict) and tree.keys() != other.keys():
        raise ValueError(f"the structure must stay the same, got keys {list(other)} for {list(tree)}")
    if isinstance(tree, (list, tuple)) and len(tree) != len(other):
        raise ValueError(f"the structure must stay the same, got {len(other)} values for {len(tree)}")


def _kind(tree: Tree) -> str:
    return type(tree).__name__ if isinstance(tree, _CONTAINERS) else "leaf"
