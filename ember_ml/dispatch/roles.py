"""Roles of parameters: what dispatch does with their values, as their annotations say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from ember_ml.types import Role

# Values become tensors: TENSOR takes part in promotion, INDEX becomes int64, MASK becomes bool.
TENSOR, INDEX, MASK = "tensor", "index", "mask"
# Values become the engine's own objects.
DTYPE, DEVICE = "dtype", "device"
# Options: a bool, a number, an integer, one or more integers. PLAIN values are passed on unchanged.
FLAG, SCALAR, COUNT, COUNTS, PLAIN = "flag", "scalar", "count", "counts", "plain"
# For results only: a NumPy array on every engine.
NUMPY = "numpy"

TENSOR_ROLES = (TENSOR, INDEX, MASK)


class Parameter(NamedTuple):
    """A parameter of an operation: its role, whether it holds several values, and the kind of dtypes it accepts."""

    name: str
    role: str
    many: bool
    variadic: bool
    keyword: bool
    optional: bool
    kind: str = "any"


class _Meaning(NamedTuple):
    role: str
    many: bool
    optional: bool
    kind: str = "any"


_VARIADIC = 0x04


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Parameters of ``function``, in order. Raises ``TypeError`` if an annotation cannot be resolved."""
    code = function.__code__
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    names = list(code.co_varnames[: positional + keyword])
    if code.co_flags & _VARIADIC:
        names.insert(positional, code.co_varnames[positional + keyword])
    found = []
    for place, name in enumerate(names):
        variadic = bool(code.co_flags & _VARIADIC) and place == positional
        try:
            role, many, optional, kind = _meaning(function, name)
        except Exception as error:
            raise TypeError(
                f"{function.__name__}: the annotation of {name} must be a type that its module can resolve, "
                f"got {function.__annotations__[name]!r} ({error})"
            ) from error
        keyword = place >= positional and not variadic
        found.append(Parameter(name, role, variadic or many, variadic, keyword, optional, kind))
    return tuple(found)


def returns_numpy(function: Callable[..., Any]) -> bool:
    """Whether the annotation of the result is ``HostArray``."""
    try:
        return _meaning(function, "return").role == NUMPY
    except NameError:
        # A result may be annotated with a name imported only for type checkers; HostArray is always imported.
        return False


def _meaning(function: Callable[..., Any], name: str) -> _Meaning:
    """Meaning of an annotation; a missing one is ``Any``."""
    annotation = function.__annotations__.get(name, Any)
    if not isinstance(annotation, str):
        return _read(annotation)
    names = function.__globals__
    known = _meanings.get((id(names), annotation))
    if known is None:
        holder = SimpleNamespace(__annotations__={name: annotation})
        known = names, _read(get_type_hints(holder, names, include_extras=True)[name])
        _meanings[id(names), annotation] = known
    return known[1]


# By the globals of a module, which the value keeps alive, and the text: most annotations occur in many signatures.
_meanings: dict[tuple[int, str], tuple[dict[str, Any], _Meaning]] = {}


def _read(annotation: Any) -> _Meaning:
    members = _members(annotation)
    optional = type(None) in members or None in members
    given = [member for member in members if member is not type(None) and member is not None]
    for several, roles in ((False, given), (True, [_element(member) for member in given])):
        for member in roles:
            if get_origin(member) is Annotated:
                marks = [mark for mark in member.__metadata__ if isinstance(mark, Role)]
                if marks:
                    return _Meaning(marks[0].name, several, optional, marks[0].kind)
    kinds = {int if _element(member) is int else member for member in given}
    if kinds == {bool}:
        return _Meaning(FLAG, False, optional)
    if kinds in ({float}, {complex}, {int, float}, {int, complex}):
        return _Meaning(SCALAR, False, optional)
    if given == [int]:
        return _Meaning(COUNT, False, optional)
    if kinds == {int}:
        return _Meaning(COUNTS, int not in given, optional)
    return _Meaning(PLAIN, False, optional)


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _element(annotation: Any) -> Any:
    """Type of the elements of a sequence type, else ``None``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    return arguments[0] if isinstance(origin, type) and issubclass(origin, Sequence) and arguments else None
