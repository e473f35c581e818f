"""The layout of a model: which modules and tensors are below it, by path, and which names are tied to one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import ref

from ember_ml.dtypes import with_article, written
from ember_ml.nn.modules.slots import CONSTANT, FROZEN, TRAINABLE, Assigned, Slot
from ember_ml.types import Tensor

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module


class Entry(NamedTuple):
    """Where a tensor is: its path, and the module and attribute that hold it, which of a tied one are elsewhere."""

    path: str
    module: Node
    name: str


class Layout:
    """The modules and tensors below a module, found once and used until that structure changes."""

    def __init__(self, root: Node) -> None:
        self.modules: dict[str, Any] = {}
        self.roles: dict[str, str] = {}
        # Every tensor once, under the first of its paths; and all paths.
        self.entries: dict[str, Entry] = {}
        self.names: dict[str, Entry] = {}
        # The first path of each tensor that is tied, for the others.
        self.ties: dict[str, str] = {}
        self._places: dict[tuple[int, str], str] = {}
        # Empty lists, which may get modules by ``append`` without anyone being told.
        self.empty: list[Any] = []
        self._visit(root, "", set())
        self.trainable = self._having(TRAINABLE)
        self.is_checked = False

    def _visit(self, module: Node, path: str, seen: set[int]) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        self.modules[path] = module
        prefix = path and path + "."
        for name, value in list(module.__dict__.items()):
            if type(value) in (list, dict) and name not in OWN:
                if not value:
                    self.empty.append(value)
                elif holds_modules(value):
                    setattr(module, name, value)
        for name in module._roles:
            self._enter(prefix + name, *module._holder(name))
        for name in module._children:
            self._visit(getattr(module, name), prefix + name, seen)

    def _enter(self, path: str, holder: Node, name: str) -> None:
        self.names[path] = entry = Entry(path, holder, name)
        first = self._places.setdefault((id(holder), name), path)
        if first is path:
            self.roles[path] = holder._roles[name]
            self.entries[path] = entry
        else:
            self.ties[path] = first

    def check(self, root: Node) -> None:
        """Raise an error if one tensor was assigned to two names: an update would make two of it without a word."""
        entries = self._having(TRAINABLE, FROZEN)
        for entry in entries if any(name in module._rebound for _, module, name in entries) else ():
            tensor = getattr(entry.module, entry.name)
            for other in entries if entry.name in entry.module._rebound else ():
                if other is not entry and getattr(other.module, other.name) is tensor:
                    first, second = (one.path for one in entries if one is entry or one is other)
                    raise ValueError(
                        f"{type(root).__name__}: a tensor must have one name, got {first!r} and {second!r} for one "
                        "tensor. To train it as one, assign Tied(module, name) of where it is to the second; "
                        "ops.copy(x) makes two of it"
                    )
        self.is_checked = True

    def _having(self, *roles: str) -> list[Entry]:
        return [entry for path, entry in self.entries.items() if self.roles[path] in roles]

    def having(self, *roles: str) -> dict[str, Tensor]:
        return {path: getattr(module, name) for path, module, name in self._having(*roles)}

    def saved(self) -> dict[str, Tensor]:
        """The tensors that are worth keeping, those that are tied under each of their paths."""
        return {
            path: getattr(module, name)
            for path, module, name in self.names.values()
            if self.roles[self.ties.get(path, path)] != CONSTANT
        }


class Node:
    """What a layout has to know of a module: the names that it has, and who is above it. ``Module`` has the rest."""

    training: bool
    _roles: dict[str, str]
    # Where those names lead that are tied, and the parameters that were assigned a tensor.
    _ties: dict[str, tuple[Node, str]]
    _rebound: dict[str, None]
    _children: dict[str, None]
    _layout: Layout | None
    _parents: dict[int, ref[Node]]
    # What a compiled program does not depend on, or knows from the paths of the tensors.
    _not_in_cache_key = frozenset({"_roles", "_rebound", "_children", "_layout", "_parents"})

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Here, so that a subclass need not call super().__init__().
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise TypeError(f"{cls.__name__}: there must be no arguments, got {len(args) + len(kwargs)}")
        self = super().__new__(cls)
        self.__dict__.update(training=True, _roles={}, _ties={}, _rebound={}, _children={}, _layout=None, _parents={})
        return self

    def _holder(self, name: str) -> tuple[Node, str]:
        """The module that holds a tensor, and its name there: of a tied one, those that it is tied to."""
        holder = self
        while name in holder._ties:
            holder, name = holder._ties[name]
        if name not in holder._roles:
            raise AttributeError(
                f"{type(holder).__name__}: the tensor {name!r}, which others are tied to, must not be deleted"
            )
        return holder, name

    def _forget(self, name: str) -> None:
        if name in self._roles or name in self._children:
            self._roles.pop(name, None)
            self._ties.pop(name, None)
            self._rebound.pop(name, None)
            self._children.pop(name, None)
            self._change()

    def _change(self) -> None:
        """Let this module, and all that contain it, look anew at what is below them."""
        for module in self._containing():
            object.__setattr__(module, "_layout", None)

    def _containing(self) -> list[Node]:
        """This module, and all that contain it or are tied to it."""
        found = [self]
        seen = {id(self)}
        for module in found:
            for link in list(module._parents.values()):
                parent = link()
                if parent is not None and id(parent) not in seen:
                    seen.add(id(parent))
                    found.append(parent)
        return found

    def layout(self) -> Layout:
        """The modules and tensors below this one."""
        layout = self._layout
        if layout is None or any(layout.empty):
            layout = Layout(self)
            object.__setattr__(self, "_layout", layout)
        if not layout.is_checked:
            layout.check(self)
        return layout

    def __getstate__(self) -> dict[str, Any]:
        from ember_ml.nn.tensor import EmberTensor

        # As portable tensors: an engine may lose digits when it pickles its own.
        state = {name: value for name, value in self.__dict__.items() if name not in ("_layout", "_parents")}
        # A shallow copy has its own names.
        own = {name: dict(self.__dict__[name]) for name in ("_roles", "_ties", "_rebound", "_children")}
        return {**state, **own, **{name: EmberTensor(state[name]) for name in self._roles if name not in self._ties}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.update({name: state[name].native for name in self._roles if name not in self._ties})
        for below in [state[name] for name in self._children] + [holder for holder, _ in self._ties.values()]:
            below._parents[id(self)] = ref(self)


class Tied(Assigned):  # type: ignore[misc]
    """Another name for a tensor that a module has: what is assigned to either name, both have.

    It is one parameter, listed under the first of its paths and saved under each. A new ``Parameter`` ends the tie.

    Args:
        module: the module that has the tensor.
        name: the tensor's name there.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules import Linear, Sequential
    >>> model = Sequential(Linear(2, 2), Linear(2, 2))
    >>> model[1].weight = Tied(model[0], "weight")
    >>> list(model.parameters())
    ['0.weight', '0.bias', '1.bias']
    >>> model[0].weight = ops.ones((2, 2))
    >>> model[1].weight.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, module: Module, name: str) -> None:
        if not isinstance(module, Node):
            raise TypeError(f"Tied: module must be the Module that has the tensor, got {written(module)}")
        self.module, self.name = module, name

    def __repr__(self) -> str:
        return f"Tied({type(self.module).__name__}, {self.name!r})"


def holds_modules(value: Any) -> bool:
    """Whether a container holds modules, and nothing else."""
    items = list(value.values() if isinstance(value, dict) else value)
    slots = [item for item in items if isinstance(item, Slot)]
    if slots:
        raise TypeError(f"parameters must each be an attribute, got {with_article(type(value).__name__)} of them")
    found = [
        isinstance(item, Node) or (isinstance(item, CONTAINERS) and item and holds_modules(item)) for item in items
    ]
    if any(found) and not all(found):
        raise TypeError(
            f"{with_article(type(value).__name__)} in an attribute must hold modules alone or none, got modules and "
            "other values"
        )
    return any(found)


# The attributes of every module that are not in its class.
OWN = frozenset({"training", "_roles", "_ties", "_rebound", "_children", "_layout", "_parents"})

CONTAINERS = (list, tuple, dict)
