"""Nested containers of values: dictionaries, lists and tuples within one another.

Anything else is a leaf, ``None`` included. Named tuples keep their type; other subclasses become the plain container.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

from ember_ml.dtypes import with_article

# A tensor, or tensors in nested containers. Operations take it as it is.
Tree: TypeAlias = Any

_CONTAINERS = (dict, list, tuple)


def leaves(tree: Tree) -> list[Any]:
    """The leaves of ``tree``, from left to right; those of dictionaries in the order of insertion.

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


# With more contents than this, it is worth a look whether a container is in several places.
_MANY = 1 << 20


def contents(containers: Sequence[Any], with_dicts: bool = True) -> list[Any]:
    """What the containers hold, one after another; of dictionaries the values.

    A container may count once though it is there several times. Otherwise a list that holds itself twice would have
    more contents on each level, and soon more than memory.

    Args:
        with_dicts: whether there may be dictionaries among the containers, which takes time to find out.

    >>> contents([[1, 2], {"a": [3]}])
    [1, 2, [3]]
    """
    if len(containers) > 1 and (containers[0] is containers[-1] or sum(builtins.map(len, containers)) > _MANY):
        containers = list({id(one): one for one in containers}.values())
    if with_dicts and any(issubclass(kind, dict) for kind in set(builtins.map(type, containers))):
        containers = [one.values() if isinstance(one, dict) else one for one in containers]
    return list(chain.from_iterable(containers))


def depth(tree: Tree) -> int:
    """How many containers are around the innermost leaf; a ``ValueError`` if one contains itself.

    >>> depth({"a": 1, "b": [2, (3,)]})
    3
    """
    depths: dict[int, int] = {}
    # The containers around the one at the top of the stack.
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
    """Both are leaves, or containers of one kind with the same keys or length."""
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
