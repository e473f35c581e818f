"""Dtypes, the promotion table, and the rules that determine the dtype of a result."""

from __future__ import annotations

import builtins
import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = [
    "bfloat16", "bool", "complex64", "complex128", "float16", "float32", "float64",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


class EmberDType:
    """A dtype that is independent of the engine; equal to its name and to every engine's own object for it."""

    __slots__ = ("bits", "kind", "name")

    def __init__(self, name: str, kind: str, bits: int) -> None:
        self.name = name
        self.kind = kind
        self.bits = bits

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return (self.bits + 7) // 8

    def __eq__(self, other: object) -> builtins.bool:
        if isinstance(other, str):
            return self.name == other
        return find(other) is self

    def __ne__(self, other: object) -> builtins.bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __format__(self, form: str) -> str:
        return format(self.name, form)

    def __repr__(self) -> str:
        return f"ember_ml.{self.name}"

    @property
    def __numpy_dtype__(self) -> Any:
        """NumPy's dtype object, which NumPy reads from this attribute."""
        from ember_ml.backend import load  # it imports this module

        return load("numpy").dtypes[self.name]

    def __reduce__(self) -> tuple[Callable[[object], EmberDType], tuple[str]]:
        return as_dtype, (self.name,)


bool = EmberDType("bool", "bool", 1)
int8 = EmberDType("int8", "signed integer", 8)
int16 = EmberDType("int16", "signed integer", 16)
int32 = EmberDType("int32", "signed integer", 32)
int64 = EmberDType("int64", "signed integer", 64)
uint8 = EmberDType("uint8", "unsigned integer", 8)
uint16 = EmberDType("uint16", "unsigned integer", 16)
uint32 = EmberDType("uint32", "unsigned integer", 32)
uint64 = EmberDType("uint64", "unsigned integer", 64)
float16 = EmberDType("float16", "real floating", 16)
bfloat16 = EmberDType("bfloat16", "real floating", 16)
float32 = EmberDType("float32", "real floating", 32)
float64 = EmberDType("float64", "real floating", 64)
complex64 = EmberDType("complex64", "complex floating", 64)
complex128 = EmberDType("complex128", "complex floating", 128)

DTYPES: dict[str, EmberDType] = {name: globals()[name] for name in __all__}

# Names of dtype objects by their type, so that objects of different engines are never compared with each other.
_names: dict[type, dict[Any, str]] = {
    str: {name: name for name in DTYPES} | {"bool_": "bool"},
    type: {builtins.bool: "bool", int: "int64"},
}


def name_of(value: Any) -> str:
    """Name of the dtype that ``value`` denotes, or ``""``; for an engine's object, the last part of its ``str``."""
    known = _names.setdefault(type(value), {})
    try:
        found = known.get(value, "")
    except TypeError:  # unhashable, so not a dtype
        return ""
    if not found and not isinstance(value, str):
        printed = value.__name__ if isinstance(value, type) else str(value).rpartition(".")[2]
        found = _names[str].get(printed, "")
        if found:
            known[value] = found
    return found


def find(value: Any) -> EmberDType | None:
    """The dtype that ``value`` denotes, or ``None``."""
    if isinstance(value, EmberDType):
        return value
    if value is float or value is complex:
        return default_dtype(value)
    found = DTYPES.get(name_of(value))
    return DTYPES.get(_CODES.get(value.lstrip("<=|"), "")) if found is None and isinstance(value, str) else found


# NumPy's codes of dtypes.
_CODES = {
    "?": "bool", "b1": "bool", "i1": "int8", "b": "int8", "i2": "int16", "h": "int16", "i4": "int32", "i": "int32",
    "i8": "int64", "l": "int64", "q": "int64", "u1": "uint8", "B": "uint8", "u2": "uint16", "H": "uint16",
    "u4": "uint32", "I": "uint32", "u8": "uint64", "L": "uint64", "Q": "uint64", "f2": "float16", "e": "float16",
    "f4": "float32", "f": "float32", "f8": "float64", "d": "float64", "c8": "complex64", "F": "complex64",
    "c16": "complex128", "D": "complex128",
}  # fmt: skip


def as_dtype(value: object) -> EmberDType:
    """The ``EmberDType`` for an ``EmberDType``, a name, a Python type or an engine's dtype object."""
    found = find(value)
    if found is None:
        from ember_ml.spellings import value_hint  # rarely needed

        hint = value_hint(value, DTYPES) if isinstance(value, str) else ""
        raise TypeError(f"dtype must be one of {', '.join(DTYPES)}, got {written(value)}{hint}")
    return found


_defaults = {"float": float32}


def default_float() -> EmberDType:
    """Dtype of Python floats: float32 unless changed by ``set_default_float``."""
    return _defaults["float"]


def set_default_float(dtype: EmberDType) -> None:
    """Make ``dtype`` the dtype of Python floats."""
    if dtype.kind != "real floating":
        raise TypeError(f"dtype must be a real floating dtype, got {dtype.name}")
    _defaults["float"] = dtype


def default_dtype(number: type) -> EmberDType:
    """Dtype of a Python number by itself."""
    if number is float:
        return _defaults["float"]
    if number is complex:
        return complex128 if _defaults["float"] is float64 else complex64
    return int64 if number is int else bool


KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("signed integer",),
    "unsigned integer": ("unsigned integer",),
    "integral": ("signed integer", "unsigned integer"),
    "real floating": ("real floating",),
    "complex floating": ("complex floating",),
    "floating": ("real floating", "complex floating"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
    "real numeric": ("signed integer", "unsigned integer", "real floating"),
    "real": ("bool", "signed integer", "unsigned integer", "real floating"),
    "bits": ("bool", "signed integer", "unsigned integer"),
    "any": ("bool", "signed integer", "unsigned integer", "real floating", "complex floating"),
}


# Values of a higher rank cannot be stored in a dtype of a lower one.
KIND_RANK = {"bool": 0, "unsigned integer": 1, "signed integer": 1, "real floating": 2, "complex floating": 3}


def of_kind(kind: str | tuple[str, ...]) -> tuple[EmberDType, ...]:
    """Dtypes of one kind, or of several, with the array API standard's names."""
    kinds = (kind,) if isinstance(kind, str) else kind
    unknown = [k for k in kinds if k not in KINDS]
    if unknown:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {unknown[0]!r}")
    names = {basic for k in kinds for basic in KINDS[k]}
    return tuple(d for d in DTYPES.values() if d.kind in names)


def _promoted(a: EmberDType, b: EmberDType) -> EmberDType | None:
    if a is b or b is bool:
        return a
    if a is bool:
        return b
    integers = KINDS["integral"]
    if a.kind in integers and b.kind in integers:
        return _promoted_integers(a, b)
    if a.kind in integers:
        return b
    if b.kind in integers:
        return a
    if a.kind == b.kind:
        if a.bits == b.bits:
            return float32
        return a if a.bits > b.bits else b
    whole, part = (a, b) if a.kind == "complex floating" else (b, a)
    return complex128 if part is float64 else whole


def _promoted_integers(a: EmberDType, b: EmberDType) -> EmberDType | None:
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "signed integer" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return None if unsigned is uint64 else DTYPES[f"int{unsigned.bits * 2}"]


# Keyed by names, which compilers that trace Python can look up.
PROMOTION: dict[tuple[str, str], EmberDType | None] = {
    (a.name, b.name): _promoted(a, b) for a in DTYPES.values() for b in DTYPES.values()
}


def promote(a: EmberDType, b: EmberDType) -> EmberDType:
    """Dtype that ``a`` and ``b`` are promoted to."""
    common = PROMOTION[a.name, b.name]
    if common is None:
        raise TypeError(f"dtypes must have a common one, got {a.name} and {b.name}; cast one of them first")
    return common


def adapt(dtype: EmberDType, number: type) -> EmberDType:
    """Dtype that a tensor of ``dtype`` and a Python number are promoted to: the number can change only the kind."""
    if number is builtins.bool:
        return dtype
    if number is int:
        return int64 if dtype is bool else dtype
    if number is float:
        return dtype if dtype.kind in KINDS["floating"] else default_float()
    if dtype.kind == "complex floating":
        return dtype
    return complex128 if float_of(dtype) is float64 else complex64


def holds(dtype: EmberDType, number: float) -> builtins.bool:
    """Whether a tensor of ``dtype`` can store a Python number.

    A floating dtype rejects only integers that overflow a Python float; other numbers may round to infinity. An integer
    dtype accepts fractions between its limits, but not NaN or infinities.
    """
    if dtype.kind in KINDS["integral"]:
        signed = dtype.kind == "signed integer"
        return -(1 << dtype.bits - 1) * signed - 1 < number < 1 << dtype.bits - signed
    try:
        float(number)
    except OverflowError:
        return dtype is bool
    return True


def float_of(dtype: EmberDType) -> EmberDType:
    """``dtype`` if it is floating, else the default float."""
    return dtype if dtype.kind in KINDS["floating"] else default_float()


def real_of(dtype: EmberDType) -> EmberDType:
    """Dtype of the real part of ``dtype``."""
    if dtype is complex64:
        return float32
    return float64 if dtype is complex128 else dtype


def double_of(dtype: EmberDType) -> EmberDType:
    """Widest floating dtype of the same kind."""
    return complex128 if dtype.kind == "complex floating" else float64


def wide_of(dtype: EmberDType) -> EmberDType:
    """Dtype in which values of ``dtype`` are summed."""
    if dtype is bool or dtype.kind == "signed integer":
        return int64
    return uint64 if dtype.kind == "unsigned integer" else dtype


def _same(dtype: EmberDType) -> EmberDType:
    return dtype


class DTypeRule(NamedTuple):
    """How the dtypes of an operation's tensors combine, and the dtype of its result.

    ``mode`` is ``"promote"`` (arguments are promoted to one dtype), ``"first"`` (all are cast to the dtype of the
    first) or ``"separate"`` (each keeps its own). ``compute`` maps that dtype to the one in which the backend computes,
    and ``result`` to that of the result. If ``result`` is ``None``, the operation determines it.
    """

    name: str
    sentence: str
    mode: str
    compute: Callable[[EmberDType], EmberDType]
    result: Callable[[EmberDType], EmberDType] | None


free = DTypeRule(
    "free", "Each argument keeps its dtype; the docstring states the dtype of the result.", "separate", _same, None
)
kept = DTypeRule(
    "kept", "The result has the dtype of the first tensor; the others are cast to it.", "first", _same, _same
)
promoted = DTypeRule(
    "promoted", "The arguments are promoted to one dtype, which is that of the result.", "promote", _same, _same
)
floating = DTypeRule(
    "floating", "As promoted; integers and bool become the default float.", "promote", float_of, float_of
)
magnitude = DTypeRule(
    "magnitude", "As promoted; the result of complex arguments has the dtype of the real part.", "promote",
    _same, real_of,
)  # fmt: skip
measured = DTypeRule(
    "measured", "As floating; the result of complex arguments has the dtype of the real part.", "promote", float_of,
    lambda dtype: real_of(float_of(dtype)),
)  # fmt: skip
compared = DTypeRule(
    "compared", "The arguments are promoted to one dtype; the result is bool.", "promote", _same, lambda _: bool
)
indexed = DTypeRule(
    "indexed", "The arguments are promoted to one dtype; the result is int64.", "promote", _same, lambda _: int64
)
accumulated = DTypeRule(
    "accumulated", "As promoted; the result of bool and signed integers is int64, of unsigned integers uint64.",
    "promote", _same, wide_of,
)  # fmt: skip
doubled = DTypeRule(
    "doubled", "As promoted, in float64, or complex128 if an argument is complex.", "promote", double_of, double_of
)

DTYPE_RULES: dict[str, DTypeRule] = {
    rule.name: rule
    for rule in (free, kept, promoted, floating, magnitude, measured, compared, indexed, accumulated, doubled)
}


def shown(number: float) -> str:
    """A Python number for messages; very large integers are shown as their length in bits.

    >>> shown(300)
    '300'
    """
    if isinstance(number, int) and number.bit_length() > 1024:
        return f"an integer of {number.bit_length()} bits"
    return repr(number)


def describe(value: Any) -> str:
    """``float32[2, 3]`` for a tensor, the value of a number, and the type's name for anything else; for messages."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return repr(value) if isinstance(value, int | float | complex) else type(value).__name__
    found = find(dtype)
    name = str(dtype) if found is None else found.name
    return f"{name}{list(shape)}"


# All of a sequence may be more than memory holds, or without end.
_SHORT = reprlib.Repr()
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxdict = _SHORT.maxset = 60
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60
_SHORT.maxlevel = 3
_TEXTS = (str, bytes, list, tuple, dict, set, builtins.bool)


def written(value: Any) -> str:
    """An argument as it was given, if that is short, else what it is; for messages.

    >>> written("mean"), written((2, 3)), written(object())
    ("'mean'", '(2, 3)', 'an object')
    """
    text = _SHORT.repr(value) if value is None or isinstance(value, _TEXTS) else ""
    if 0 < len(text) <= 60 and "..." not in text:
        return text
    if isinstance(value, type):
        return f"the class {value.__name__}"
    text = describe(value)
    return with_article(text) if text == type(value).__name__ else text


def with_article(noun: str) -> str:
    """A noun with "a" or "an" before it.

    >>> with_article("int64"), with_article("uint8"), with_article("str")
    ('an int64', 'a uint8', 'a str')
    """
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"
