"""Text about modules: notes on errors, and the options that ``repr`` shows."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from ember_ml import tree
from ember_ml.dtypes import describe
from ember_ml.extend import rename_error
from ember_ml.nn.modules.layout import Node

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module


def annotate_error(module: Any, error: Exception, values: tuple[Any, ...]) -> None:
    """Add a note to ``error`` that names the innermost layer that raised it, by its path in ``module``."""
    layer, at, about = error.__dict__.get("_ember_layer", (None, 0, ""))
    if layer is None:
        if type(module).__module__.startswith("ember_ml.") and _is_unnamed(error):
            wrong_shape = getattr(module, "_wrong_shape", None)
            if wrong_shape is not None and type(error) is ValueError:
                error.args = (wrong_shape(values[0]) or error.args[0],)
            rename_error(error, type(module).__name__)
        about = _tensors_text(module) + _arguments_text(values)
        error.add_note(f"in {type(module).__name__}{about}")
        error._ember_layer = (module, len(error.__notes__) - 1, about)  # type: ignore[attr-defined]
    elif layer is not module:
        path = next((path for path, part in module.named_modules() if part is layer), None)
        if path is not None:
            error.__notes__[at] = f"in {type(layer).__name__} {path!r} of {type(module).__name__}{about}"


def _is_unnamed(error: Exception) -> bool:
    """Whether the message names an operation that the layer called, or nothing at all, and not what a user wrote."""
    if "_ember_name" in error.__dict__:
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    is_own = last is not None and last.tb_frame.f_globals.get("__name__", "").startswith("ember_ml.nn.modules.")
    return is_own and type(error) in (TypeError, ValueError) and not re.match(r"\w+: ", str(error))


def _tensors_text(module: Module) -> str:
    """Description of a module's own tensors or, if it has none, of those below it."""
    held = {name: getattr(module, name) for name in module._roles} or module.tensors()
    shown = [f"{name} {describe(tensor)}" for name, tensor in list(held.items())[:_SHOWN]]
    return f" ({', '.join(shown + ['...'] * (len(held) > _SHOWN))})" if shown else ""


def _arguments_text(values: tuple[Any, ...]) -> str:
    """Description of the tensors that a module was called with."""
    shown = [text for value in values for text in _described(value)]
    return f" given {', '.join(shown)}" if shown else ""


def _described(value: Any) -> list[str]:
    """Descriptions of the tensors in a value, or the shape of a nested list of numbers."""
    found = [describe(leaf) for leaf in tree.leaves(value) if hasattr(leaf, "shape")]
    if found and isinstance(value, (list, tuple, dict)):
        return [f"a {type(value).__name__} of {', '.join(found)}"]
    if found or not isinstance(value, (list, tuple)):
        return found
    kind, sizes = type(value).__name__, []
    while isinstance(value, (list, tuple)):
        sizes.append(len(value))
        value = value[0] if value else None
    return [f"{kind}{sizes}"]


# Number of tensors that a message lists.
_SHOWN = 6


def options(module: Module) -> str:
    """Constructor arguments that are also attributes and differ from their defaults, as text.

    >>> from ember_ml.nn.modules import Linear
    >>> options(Linear(2, 3, bias=False))
    '2, 3, bias=False'
    """
    shown: list[str] = []
    for name, parameter in inspect.signature(type(module)).parameters.items():
        value = module.__dict__.get(name, parameter.default)
        if value is None and parameter.default is True:
            value = False
        is_default = value is parameter.default or (type(value) is type(parameter.default) and _equal(value, parameter))
        if name not in module.__dict__ or isinstance(value, Node) or is_default or name in module._roles:
            continue
        text = getattr(value, "__name__", None) or repr(value)
        shown.append(text if parameter.default is parameter.empty else f"{name}={text}")
    return ", ".join(shown)


def _equal(value: Any, parameter: inspect.Parameter) -> bool:
    try:
        return bool(value == parameter.default)
    except Exception:
        return False
