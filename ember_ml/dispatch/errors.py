"""Class and note of errors: the same mistake raises the same class on every engine."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

from ember_ml.dispatch.roles import COUNTS, TENSOR_ROLES
from ember_ml.dtypes import describe
from ember_ml.errors import EmberError

if TYPE_CHECKING:
    from ember_ml.backend import Backend
    from ember_ml.dispatch.operation import Operation

# What engines raise for wrong arguments. Others are control flow, such as torch's at the end of a recomputation.
ARGUMENT_ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError)

_PACKAGE = __name__.rpartition(".")[0]
_TEXTS = (str, bytes, list, tuple, dict, set)


def annotate_error(operation: Operation, backend: Backend, error: Exception, values: tuple[Any, ...]) -> Exception:
    """``error`` in its common class, with a note that names the operation, its arguments and the engine."""
    wrong = option_error(operation, error, values) if isinstance(error, ARGUMENT_ERRORS) else None
    if wrong is not None:
        wrong.__cause__, error = error, wrong
    agreed = None if isinstance(error, EmberError) else backend.error_class(error)
    if isinstance(error, (OverflowError, ZeroDivisionError)):
        agreed = ValueError
    elif isinstance(error, MemoryError):
        agreed = MemoryError
    if agreed is not None and type(error) is not agreed:
        translated = agreed(str(error))
        translated.__cause__ = error
        error = translated
    note = f"in ember_ml.ops.{operation.name}({_arguments(operation, values)}) on the {backend.chosen_as} backend"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return hide_frames(error)


def option_error(operation: Operation, error: Exception, values: tuple[Any, ...]) -> TypeError | None:
    """The error for an option that must hold integers and does not; ``None`` if ``error`` says more."""
    for value, parameter, default in zip(values, operation.parameters, operation.defaults, strict=True):
        if parameter.role == COUNTS and not parameter.variadic:
            if value is None and default is None:
                continue
            several = isinstance(value, (list, tuple))
            if isinstance(error, TypeError) and parameter.many and isinstance(value, int):
                required = "a sequence of integers"
            elif all(hasattr(type(item), "__index__") for item in (value if several else [value])):
                continue
            else:
                required = "integers" if parameter.many else "an integer or a sequence of integers"
            return TypeError(f"{operation.name} takes {required} for {parameter.name}, not {written(value)}")
    return None


# A sequence may be infinite, or its text larger than memory.
_SHORT = reprlib.Repr()
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxdict = _SHORT.maxset = 60
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60
_SHORT.maxlevel = 3


def written(value: Any) -> str:
    """An option as it was given if that is short, else its description; for messages."""
    text = _SHORT.repr(value) if value is None or isinstance(value, (*_TEXTS, bool)) else ""
    return text if 0 < len(text) <= 60 and "..." not in text else describe(value)


def _arguments(operation: Operation, values: tuple[Any, ...]) -> str:
    """Dtypes and shapes of the tensors, and the options that are not at their defaults."""
    shown: list[str] = []
    for value, parameter, default in zip(values, operation.parameters, operation.defaults, strict=True):
        if parameter.role in TENSOR_ROLES:
            several = parameter.many and isinstance(value, (list, tuple))
            shown += map(describe, value if several else [value])
        elif value is not default and not parameter.variadic:
            shown.append(f"{parameter.name}={written(value)}")
    return ", ".join(shown)


def hide_frames(error: Exception) -> Exception:
    """``error`` with a traceback that begins outside of this package."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_globals.get("__package__") == _PACKAGE:
        traceback = traceback.tb_next
    return error.with_traceback(traceback)
