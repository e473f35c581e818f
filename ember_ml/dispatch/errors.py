"""Class and note of errors: the same mistake raises the same class on every engine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from ember_ml.dispatch.roles import COUNTS, DTYPE, TENSOR_ROLES
from ember_ml.dtypes import describe, find, written
from ember_ml.errors import AxisError, EmberError, axis_error, caller

if TYPE_CHECKING:
    from ember_ml.backend import Backend
    from ember_ml.dispatch.operation import Operation

# What engines raise for wrong arguments. Others are control flow, such as torch's at the end of a recomputation.
ARGUMENT_ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError)

E = TypeVar("E", bound=Exception)

_PACKAGE = __name__.rpartition(".")[0]


def annotate_error(operation: Operation, backend: Backend, error: Exception, values: tuple[Any, ...]) -> Exception:
    """``error`` in its common class, with the operation's name first and a note on its arguments and the engine."""
    is_of_user = _is_of_user(operation, error, values)
    wrong = option_error(operation, error, values) if isinstance(error, ARGUMENT_ERRORS) else None
    if wrong is not None:
        wrong.__cause__, error = error, wrong
    agreed = None if isinstance(error, EmberError) else backend.error_class(error)
    if isinstance(error, (OverflowError, ZeroDivisionError)):
        agreed = ValueError
    elif isinstance(error, MemoryError):
        agreed = MemoryError
    kind = agreed or type(error)
    text = None if is_of_user else _plain_text(operation, kind, error, values)
    if text is not None and "_ember_name" in error.__dict__:
        # An operation within this one raised it, and its notes stay.
        error.args = (text,)
    elif text is not None or type(error) is not kind:
        translated = kind(str(error) if text is None else text)
        translated.__cause__ = error
        if text is None and "_ember_name" in error.__dict__:
            translated._ember_name = error._ember_name  # type: ignore[attr-defined]
        error = translated
    if not is_of_user:
        rename(error, called_as(operation))
    return _with_note(operation, backend, error, values)


def nesting_error(operation: Operation, backend: Backend, error: ValueError, values: tuple[Any, ...]) -> Exception:
    """``error`` about the levels of a sequence, whose shape is unknown, with the operation's name and a note."""
    return _with_note(operation, backend, rename(error, called_as(operation)), values)


def _with_note(operation: Operation, backend: Backend, error: Exception, values: tuple[Any, ...]) -> Exception:
    note = f"in ember_ml.ops.{operation.name}({_arguments(operation, values)}) on the {backend.chosen_as} backend"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return hide_frames(error)


def rename(error: E, name: str) -> E:
    """``error`` with ``name`` before its message, in place of the name of what raised it."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        text = error.args[0].removeprefix(f"{error.__dict__.get('_ember_name', name)}: ")
        error.args = (f"{name}: {text}",)
        if isinstance(error, ImportError):
            error.msg = error.args[0]
        error._ember_name = name  # type: ignore[attr-defined]
    return error


def called_as(operation: Operation) -> str:
    """The name by which the user called an operation: its own, or an alias that the calling line has."""
    if not _aliases:
        for module in [module for name, module in sys.modules.items() if name.startswith("ember_ml.ops")]:
            for name, value in vars(module).items():
                own = getattr(value, "__operation__", None)
                if own is not None and name != own.name and not name.startswith("_"):
                    _aliases.setdefault(own.key, set()).add(name)
    known = _aliases.get(operation.key, set())
    frame = caller()
    if known.isdisjoint(frame.f_code.co_names):
        return operation.name
    import dis  # errors are rare

    loaded = [i for i in dis.get_instructions(frame.f_code) if i.argval in known or i.argval == operation.name]
    called = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    # Calls and what they call begin in one place.
    same = [
        i for i in loaded if i.positions is not None and (i.positions.lineno, i.positions.col_offset) == called[::2]
    ]
    before = [i for i in loaded if i.offset <= frame.f_lasti]
    return str((same or before or loaded)[-1].argval)


# The further names of operations, by the key of the operation.
_aliases: dict[int, set[str]] = {}


def _is_of_user(operation: Operation, error: Exception, values: tuple[Any, ...]) -> bool:
    """Whether a function of the user's, which the operation called, raised ``error``."""
    if operation.module.startswith("ember_ml.ops.") and not any(map(callable, values)):
        return False
    traceback = error.__traceback__
    while traceback is not None:
        if not traceback.tb_frame.f_globals.get("__name__", "").startswith("ember_ml."):
            return True
        traceback = traceback.tb_next
    return False


def _plain_text(operation: Operation, kind: type[Exception], error: Exception, values: tuple[Any, ...]) -> str | None:
    """What is wrong in words that are the same on every engine, if a look at the arguments tells."""
    given = {p.name: value for value, p in zip(values, operation.parameters, strict=True)}
    tensors = {p.name: given[p.name] for p in operation.tensors if not p.many}
    several = [x for p in operation.tensors if p.many and given[p.name] is not None for x in given[p.name]]
    shapes = [tuple(getattr(x, "shape", ())) for x in [*tensors.values(), *several]]
    text = str(error)
    if kind is AxisError:
        return _axis_text(operation, given, shapes)
    if kind is TypeError:
        return _function_text(operation, given) if "not callable" in text else None
    if kind not in (ValueError, IndexError):
        return None
    found = _size_text(operation, given) or _choice_text(operation, given)
    if found is None and kind is ValueError:
        if any(part in text for part in _BROADCAST_MESSAGES) and not _broadcast(shapes):
            names = _listed([parameter.name for parameter in operation.tensors])
            lists = _listed([str(list(shape)) for shape in shapes])
            found = f"the shapes of {names} must broadcast, got {lists}"
        elif operation.category == "linearalg":
            found = _matrix_text(text, dict(zip(tensors, shapes, strict=False)))
        if found is None and operation.name in _EXPLAINED:
            found = _EXPLAINED[operation.name](shapes, given)
    if found is None and text.startswith("[") and "] " in text:
        # MLX names its own function first.
        found = text.partition("] ")[2]
    return found


# Operations whose result has one more axis, which ``axis`` counts too.
_INSERTING = ("expand_dims", "one_hot", "stack")
_BROADCAST_MESSAGES = ("broadcast", "must match the size of tensor")
_AXES = ("axis", "axes", "axis1", "axis2", "source", "destination")
_SIZES = ("shape", "num", "n", "n_rows", "n_cols", "minlength", "repetitions")
_CHOICES = {("fft", "norm"): ("backward", "ortho", "forward"), ("losses", "reduction"): ("mean", "sum", "none")}


def _axis_text(operation: Operation, given: dict[str, Any], shapes: Sequence[tuple[int, ...]]) -> str | None:
    is_inserting = operation.name in _INSERTING
    for name in _AXES if shapes else ():
        value = given.get(name)
        axes = value if isinstance(value, (list, tuple)) else (value,)
        ndim = len(shapes[0]) + (len(axes) if is_inserting else 0)
        for axis in axes:
            if isinstance(axis, int) and not -ndim <= axis < ndim:
                return str(axis_error(axis, ndim, name, "result" if is_inserting else "tensor"))
    return None


def _function_text(operation: Operation, given: dict[str, Any]) -> str | None:
    for name, value in given.items():
        if "Callable" in str(operation.function.__annotations__.get(name)) and not callable(value):
            return f"{name} must be a function, got {written(value)}"
    return None


def _size_text(operation: Operation, given: dict[str, Any]) -> str | None:
    # reshape infers a length of -1.
    least = -1 if operation.name == "reshape" else 0
    for name in _SIZES:
        value = given.get(name)
        sizes = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(size, int) and size < least for size in sizes):
            return f"{name} must {'have lengths' if name == 'shape' else 'be'} >= {least}, got {written(value)}"
    return None


def _choice_text(operation: Operation, given: dict[str, Any]) -> str | None:
    for (category, name), choices in _CHOICES.items():
        if operation.category == category and given.get(name, choices[0]) not in (*choices, None):
            return f"{name} must be {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}, got {written(given[name])}"
    return None


def _matrix_text(text: str, shapes: dict[str, tuple[int, ...]]) -> str | None:
    if any(part in text for part in ("at least 2", "at least two", "2D")):
        for name, shape in shapes.items():
            if len(shape) < 2:
                return f"{name} must have at least 2 axes, got {len(shape)}"
    for name, shape in shapes.items() if "square" in text else ():
        if shape[-2:-1] != shape[-1:]:
            return f"{name} must be square in its last two axes, got shape {list(shape)}"
    return None


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether the shapes broadcast."""
    ndim = max(map(len, shapes), default=0)
    aligned = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    return all(len({length for length in lengths if length != 1}) < 2 for lengths in zip(*aligned, strict=True))


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _matmul_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    if not all(shapes):
        return f"x1 and x2 must have at least 1 axis, got shapes {_listed([str(list(s)) for s in shapes])}"
    first, second = shapes
    if first[-1] == second[-2 if len(second) > 1 else 0]:
        return None
    return (
        "the last axis of x1 must be as long as the "
        f"{'second to last' if len(second) > 1 else 'only'} axis of x2, got shapes {list(first)} and {list(second)}"
    )


def _reshape_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    return f"shape must hold as many elements as x of shape {list(shapes[0])}, got {written(given['shape'])}"


def _broadcast_to_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    return f"shape must be one that x of shape {list(shapes[0])} broadcasts to, got {written(given['shape'])}"


def _celu_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    return "alpha must not be 0, got 0" if given["alpha"] == 0 else None


def _glu_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    axis = given["axis"]
    return f"axis {axis} must have an even length, got {shapes[0][axis]}" if shapes[0][axis] % 2 else None


def _hard_tanh_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    return f"min_val must be <= max_val, got min_val={given['min_val']}, max_val={given['max_val']}"


def _inner_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    if all(shapes) and shapes[0][-1] != shapes[1][-1]:
        return f"the last axes of x and y must have one length, got shapes {list(shapes[0])} and {list(shapes[1])}"
    return None


def _concat_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    if not shapes:
        return "arrays must hold at least 1 tensor, got none"
    return f"arrays must have one shape but for axis {given['axis']}, got {_listed([str(list(s)) for s in shapes])}"


def _stack_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    if not shapes:
        return "arrays must hold at least 1 tensor, got none"
    return (
        f"arrays must have one shape, got {_listed([str(list(s)) for s in shapes])}" if len(set(shapes)) > 1 else None
    )


def _vdot_text(shapes: list[tuple[int, ...]], given: dict[str, Any]) -> str | None:
    first, second = map(prod, shapes)
    return f"x1 and x2 must have the same number of elements, got {first} and {second}" if first != second else None


_EXPLAINED: dict[str, Callable[[list[tuple[int, ...]], dict[str, Any]], str | None]] = {
    "celu": _celu_text,
    "concat": _concat_text,
    "dot": _matmul_text,
    "glu": _glu_text,
    "hard_tanh": _hard_tanh_text,
    "inner": _inner_text,
    "matmul": _matmul_text,
    "stack": _stack_text,
    "vdot": _vdot_text,
    "reshape": _reshape_text,
    "broadcast_to": _broadcast_to_text,
}


def option_error(operation: Operation, error: Exception, values: tuple[Any, ...]) -> TypeError | None:
    """The error for an option that must hold integers and does not; ``None`` if ``error`` says more."""
    for value, parameter, default in zip(values, operation.parameters, operation.defaults, strict=True):
        if parameter.role == COUNTS and not parameter.variadic:
            if value is None and default is None:
                continue
            several = isinstance(value, (list, tuple))
            is_explained = str(error).startswith(f"{parameter.name} must ")
            is_argument_error = type(error) in (TypeError, ValueError) and not is_explained
            if is_argument_error and parameter.many and isinstance(value, int):
                required = "a sequence of integers"
            elif all(hasattr(type(item), "__index__") for item in (value if several else [value])):
                continue
            else:
                required = "a sequence of integers" if parameter.many else "an integer or a sequence of integers"
            return TypeError(f"{parameter.name} must be {required}, got {written(value)}")
    return None


def _arguments(operation: Operation, values: tuple[Any, ...]) -> str:
    """Dtypes and shapes of the tensors, and the options that are not at their defaults."""
    shown: list[str] = []
    for value, parameter, default in zip(values, operation.parameters, operation.defaults, strict=True):
        if parameter.role in TENSOR_ROLES:
            several = parameter.many and isinstance(value, (list, tuple))
            shown += map(describe, value if several else [value])
        elif value is not default and not parameter.variadic:
            dtype = find(value) if parameter.role == DTYPE else None
            shown.append(f"{parameter.name}={written(value) if dtype is None else dtype.name}")
    return ", ".join(shown)


def hide_frames(error: Exception) -> Exception:
    """``error`` with a traceback that begins outside of this package."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_globals.get("__package__") == _PACKAGE:
        traceback = traceback.tb_next
    return error.with_traceback(traceback)
