"""Layout of a model: the modules and tensors below it, by path, and the tied names among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import ref

from ember_ml.dtypes import with_article, written
from ember_ml.nn.modules.slots import CONSTANT, FROZEN, TRAINABLE, Assigned, Slot
from ember_ml.types import Tensor

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module


class Entry(NamedTuple):
    """Path of a tensor, and the module and attribute that hold it; a tied tensor is held under another path."""

    path: str
    module: Node
    name: str


class Layout:
    """Modules and tensors below a module, collected once and reused until the structure changes."""

    def __init__(self, root: Node) -> None:
        self.modules: dict[str, Any] = {}
        self.roles: dict[str, str] = {}
        # ``entries`` has every tensor once, under its first path; ``names`` has all paths.
        self.entries: dict[str, Entry] = {}
        self.names: dict[str, Entry] = {}
        # For each further path of a tied tensor, its first path.
        self.ties: dict[str, str] = {}
        self._places: dict[tuple[int, str], str] = {}
        # Empty containers: adding modules to them does not notify their module.
        self.empty: list[Any] = []
        self._visit(root, "", set())
        self.trainable = self._entries_with(TRAINABLE)
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
        """Raise an error if one tensor was assigned to two names: a training step would silently separate them."""
        entries = self._entries_with(TRAINABLE, FROZEN)
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

    def _entries_with(self, *roles: str) -> list[Entry]:
        return [entry for path, entry in self.entries.items() if self.roles[path] in roles]

    def with_roles(self, *roles: str) -> dict[str, Tensor]:
        """Tensors that have one of ``roles``, by path."""
        return {path: getattr(module, name) for path, module, name in self._entries_with(*roles)}

    def saved(self) -> dict[str, Tensor]:
        """Tensors to save; tied tensors are listed under all of their paths."""
        return {
            path: getattr(module, name)
            for path, module, name in self.names.values()
            if self.roles[self.ties.get(path, path)] != CONSTANT
        }


class Node:
    """Base class of ``Module`` with what a layout needs: registered names, and the modules above."""

    training: bool
    _roles: dict[str, str]
    # Targets of the tied names, and the parameters that were assigned another tensor.
    _ties: dict[str, tuple[Node, str]]
    _rebound: dict[str, None]
    _children: dict[str, None]
    _layout: Layout | None
    _parents: dict[int, ref[Node]]
    # Compiled programs do not depend on these, or only through the paths of the tensors.
    _not_in_cache_key = frozenset({"_roles", "_rebound", "_children", "_layout", "_parents"})

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Set up in __new__, so that subclasses need not call super().__init__().
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise TypeError(f"{cls.__name__}: there must be no arguments, got {len(args) + len(kwargs)}")
        self = super().__new__(cls)
        self.__dict__.update(training=True, _roles={}, _ties={}, _rebound={}, _children={}, _layout=None, _parents={})
        return self

    def _holder(self, name: str) -> tuple[Node, str]:
        """Module that holds the tensor ``name``, and its name there, with ties resolved."""
        holder = self
        while name in holder._ties:
            holder, name = holder._ties[name]
        if name not in holder._roles:
            raise AttributeError(
                f"{type(holder).__name__}: the tensor {name!r}, which others are tied to, must not be deleted"
            )
        return holder, name

    def _unregister(self, name: str) -> None:
        if name in self._roles or name in self._children:
            self._roles.pop(name, None)
            self._ties.pop(name, None)
            self._rebound.pop(name, None)
            self._children.pop(name, None)
            self._invalidate_layouts()

    def _invalidate_layouts(self) -> None:
        """Discard the layouts of this module and of all that contain it."""
        for module in self._dependents():
            object.__setattr__(module, "_layout", None)

    def _dependents(self) -> list[Node]:
        """This module, and all that contain it or have names tied to it."""
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
        """Modules and tensors below this one."""
        layout = self._layout
        if layout is None or any(layout.empty):
            layout = Layout(self)
            object.__setattr__(self, "_layout", layout)
        if not layout.is_checked:
            layout.check(self)
        return layout

    def __getstate__(self) -> dict[str, Any]:
        from ember_ml.nn.tensor import wrap

        # Stored as EmberTensor, because engines may lose digits when they pickle their own tensors.
        state = {name: value for name, value in self.__dict__.items() if name not in ("_layout", "_parents")}
        # A shallow copy registers names separately from the original.
        own = {name: dict(self.__dict__[name]) for name in ("_roles", "_ties", "_rebound", "_children")}
        return {**state, **own, **wrap({name: state[name] for name in self._roles if name not in self._ties})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.update({name: state[name].native for name in self._roles if name not in self._ties})
        for below in [state[name] for name in self._children] + [holder for holder, _ in self._ties.values()]:
            below._parents[id(self)] = ref(self)


class Tied(Assigned):  # type: ignore[misc]
    """Another name for a tensor of a module: assigning to either name changes both.

    The tensor is one parameter, listed under its first path and saved under all of them. Assigning a new ``Parameter``
    to the name ends the tie.

    Args:
        module: the module that holds the tensor.
        name: the name of the tensor in ``module``.

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
    """Whether a container holds only modules; a mixture of modules and other values is an error."""
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


# Instance attributes that every module has.
OWN = frozenset({"training", "_roles", "_ties", "_rebound", "_children", "_layout", "_parents"})

CONTAINERS = (list, tuple, dict)
