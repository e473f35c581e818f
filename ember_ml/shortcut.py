"""The short way to an engine: a function per operation, generated with the operation's own signature.

It lets tensors of one engine and one dtype through to the engine's function after a few identity tests, and sends
everything else to the door, by way of a table where there is one. Operations of the same signature and law share code,
so that importing stays cheap.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from functools import cache, update_wrapper
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from ember_ml import backend as backends
from ember_ml import meeting
from ember_ml.door import COUNT, DEVICE, DTYPE, FLAG, INDEX, MASK, SCALAR, TENSOR
from ember_ml.dtypes import (
    DTYPES,
    EmberDType,
    accumulated,
    bfloat16,
    compared,
    default_float,
    float32,
    floating,
    magnitude,
    of_kind,
    promoted,
    wide_of,
)

if TYPE_CHECKING:
    from ember_ml.backend import Backend
    from ember_ml.contract import Operation

# The namespace of the generated functions: globals cost less than cells here, and a dictionary look-up is dear.
#
# HOST is NumPy's array type while NumPy is active for the whole process and no use_backend block is open; otherwise
# a host array means whatever the active backend makes of it. HOSTS are the types of NumPy's scalars.
# PRIME is the tensor type of the first other engine; FRESH that of the first engine whose dtype objects are made anew
# on every access, so that identity says nothing.
# *_INDEX and *_MASK are the int64 and bool of each.
# LIFTS holds, per tensor type, how a Python number becomes a 0-d tensor, and the dtypes that take it without rising
# in kind. BOXES are the types of tensors that a hidden engine makes of NumPy's, whose dtypes they share.
_space = sys.modules["ember_ml.shortcuts"] = ModuleType("ember_ml.shortcuts", "Functions that ember_ml.shortcut made.")
_names: dict[str, Any] = vars(_space)
BOXES: set[type] = set()
LIFTS: dict[type, tuple[Callable[..., Any], dict[type, frozenset[Any]]]] = {}
_names.update(__builtins__=builtins, _type=type, HOST=None, HOSTS=frozenset(), PRIME=None, FRESH=None)
_names.update(LIFTS=LIFTS, BOXES=BOXES)


def _follow() -> None:
    active = backends.calm()
    host = active if active is not None and active.name == "numpy" else None
    _names["HOST"] = host and host.tensors[0]


backends.on_change(_follow)


class Shortcut:
    """The generated function of an operation, ``call``, and what it knows of each engine. Beside it is its ``meeting``.

    What it knows are names of its own: ``host``, ``prime`` and ``fresh`` are the functions of the three engines known
    by name, ``fast`` maps the tensor types of all others to theirs. ``*_ready`` hold the dtypes that need no cast
    (``*_first`` the most frequent one, whose tensors go to ``*_single`` where an engine has one), ``*_raw`` whether the
    function takes a Python number, ``usual`` the item size among whose types FRESH's own promotion is known to be ours,
    ``even`` the one whose types all need no cast: it costs less to look at than a dtype.
    """

    _count = 0
    _awake = False
    _split = False

    def __init__(self, operation: Operation, function: FunctionType) -> None:
        Shortcut._count += 1
        self._suffix = f"_{Shortcut._count}"
        self._function = function
        self.meeting = meeting.of(operation)
        door = self.meeting or operation.door
        self._learn(door=door, rescue=operation.door.rescue, fast={}, fast_ready={}, **_UNKNOWN)
        self.call = FunctionType(self._own(_compiled(_SLEEPING)), _names, function.__name__)
        self._learn(call=self.call)
        update_wrapper(self.call, function)
        self.call.__operation__ = operation  # type: ignore[attr-defined]

    def _own(self, shared: CodeType) -> CodeType:
        """Shared code with the names of this operation, so that tracebacks show where it is documented."""
        code = self._function.__code__
        return shared.replace(
            co_names=tuple(name + self._suffix if name in _OWN else name for name in shared.co_names),
            co_name=code.co_name,
            co_qualname=code.co_qualname,
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
        )

    def _wake(self, operation: Operation, split: bool) -> None:
        """Give the function its generated code, when the first engine is there, or the first that splits."""
        self.call.__code__ = self._own(_compiled(_source(operation, self._function, split)))
        self.call.__defaults__ = self._function.__defaults__
        self.call.__kwdefaults__ = self._function.__kwdefaults__
        self._awake = True
        self._split = split

    def open(self, operation: Operation, backend: Backend, run: Callable[..., Any]) -> None:
        """Let the tensors of ``backend`` through to ``run``."""
        alone = getattr(run, "single", None)
        if not self._awake or (alone is not None and not self._split):
            self._wake(operation, alone is not None)
        if self.meeting is not None and backend.name not in backends.HIDDEN:
            self.meeting.open(operation, backend, run)
        kind, *subclasses = backend.tensors
        native = not isinstance(run, FunctionType) or hasattr(run, "promotes")
        ready = frozenset(own for name, own in backend.dtypes.items() if _passes(operation, DTYPES[name]))
        first = backend.dtypes["float32"] if _passes(operation, float32) else _NEVER
        raw = backend.raw_numbers is None or operation.name in backend.raw_numbers
        raw = raw if native else hasattr(run, "takes_numbers")
        slot = _slot(backend)
        if slot == "HOST":
            self._learn(host_first=first, host_ready=ready, host_raw=raw, host=run, host_single=alone or run)
            run = _asking(operation, backend, run)
        elif slot == "PRIME":
            self._learn(prime_first=first, prime_ready=ready, prime_raw=raw, prime=run, prime_single=alone or run)
        elif slot == "FRESH":
            trusted = native and _is_trusted(operation)
            open_to_all = trusted and len(operation.tensors) == 1 and len(operation.dtypes) == len(DTYPES)
            even = all(_passes(operation, DTYPES[name]) for name in _FOUR_BYTES)
            self._learn(usual=4 if trusted else 0, even=4 if even else -1, fresh_raw=raw, fresh=run)
            self._learn(fresh_ready=None if open_to_all else ready, fresh_first=first, fresh_single=alone or run)
        for other in subclasses if slot in ("PRIME", "FRESH") else (kind, *subclasses):
            _names["fast_ready" + self._suffix][other] = ready
            _names["fast" + self._suffix][other] = run

    def close(self, backend: Backend) -> None:
        """Send the tensors of ``backend``, which generated code no longer knows, through the door."""
        for kind in backend.tensors:
            _names["fast" + self._suffix].pop(kind, None)
            if self.meeting is not None:
                self.meeting.ways.pop(kind, None)

    def _learn(self, **known: Any) -> None:
        for name, value in known.items():
            _names[name + self._suffix] = value


def _slot(backend: Backend) -> str:
    """The name under which generated code knows the tensor type of ``backend``; empty if it is one of the others."""
    if backend.name == "numpy":
        return "HOST"
    if backend.name in backends.HIDDEN:
        return ""
    slot = "PRIME" if backend.stable_dtypes else "FRESH"
    return slot if _names[slot] in (None, backend.tensors[0]) else ""


def know(backend: Backend) -> None:
    """Let generated code recognise the tensors of ``backend``, now that every operation is open to them."""
    LIFTS[backend.tensors[0]] = (backend.lift, _takers(backend))
    if backend.name in backends.HIDDEN:
        BOXES.update(backend.tensors)
    slot = _slot(backend)
    if slot:
        _names[f"{slot}_INDEX"] = backend.dtypes["int64"]
        _names[f"{slot}_MASK"] = backend.dtypes["bool"]
    if slot in ("PRIME", "FRESH"):
        _names[slot] = backend.tensors[0]
    elif slot:
        _names["HOSTS"] = frozenset(backend.scalars)


def forget(backend: Backend) -> None:
    """Let generated code no longer recognise the tensors of ``backend``."""
    for kind in backend.tensors:
        LIFTS.pop(kind, None)
        for slot in ("PRIME", "FRESH"):
            if _names[slot] is kind:
                _names[slot] = None


def _load_an_engine() -> None:
    backends.current()


# Until an engine is loaded, a call loads one; that replaces this code. Importing then need not generate any.
_SLEEPING = """
def call(*args, **kwargs):
    load_an_engine()
    return call(*args, **kwargs)
"""
_names["load_an_engine"] = _load_an_engine

_NEVER = object()

_FOUR_BYTES = ("int32", "uint32", "float32")

# What a shortcut knows before any engine has been loaded. Nothing of it is read before then.
_UNKNOWN: dict[str, Any] = dict.fromkeys(
    [f"{slot}{what}" for slot in ("host", "prime", "fresh") for what in ("", "_first", "_ready", "_raw", "_single")]
    + ["usual", "even"]
)


def _asking(operation: Operation, backend: Backend, run: Callable[..., Any]) -> Callable[..., Any]:
    """``run`` if NumPy is active here and now, else the door."""
    names = [p.name for p in operation.parameters if p.keyword]
    here = backends.here

    def ask(*args: Any, **kwargs: Any) -> Any:
        if (here() == "numpy" or backends.current() is backend) and not any(type(x) in BOXES for x in args):
            return run(*args, **kwargs)
        return operation.door(*args, *(kwargs[name] for name in names))

    return ask


def _passes(operation: Operation, dtype: EmberDType) -> bool:
    """Whether tensors of that dtype reach the backend as they are."""
    law = operation.law
    return (
        dtype.name in operation.dtypes
        and law.enter(dtype) is dtype
        and (law is not accumulated or wide_of(dtype) is dtype)
    )


def _is_trusted(operation: Operation) -> bool:
    """Whether an engine's own promotion among its types of four bytes is the law's."""
    return (
        operation.law in (promoted, floating, magnitude, compared)
        and default_float() is float32
        and all(name in operation.dtypes for name in _FOUR_BYTES)
    )


def _takers(backend: Backend) -> dict[type, frozenset[Any]]:
    """The dtypes that a Python float, or a small int, joins without raising the kind.

    bfloat16 is left to the door: NumPy does not know it as one of its own floats.
    """

    def of(kind: str) -> frozenset[Any]:
        return frozenset(
            backend.dtypes[d.name] for d in of_kind(kind) if d.name in backend.dtypes and d is not bfloat16
        )

    return {float: of("floating"), int: of("numeric")}


_OWN = frozenset({"door", "rescue", "call", "fast", "fast_ready", *_UNKNOWN})


@cache
def _compiled(source: str) -> CodeType:
    """The code of the function in ``source``, all of it on its first line: a traceback then shows the operation."""
    code = next(c for c in compile(source, "<shortcut>", "exec").co_consts if isinstance(c, CodeType))
    units = len(code.co_code) // 2
    return code.replace(co_linetable=b"".join(_same_line(min(8, units - i)) for i in range(0, units, 8)))


def _same_line(units: int) -> bytes:
    """An entry of the location table (PEP 626, as of Python 3.11): so many code units, no column, line difference 0."""
    no_columns = 13
    return bytes((0x80 | no_columns << 3 | units - 1, 0))


def _source(operation: Operation, function: FunctionType, split: bool) -> str:
    tensors = [p.name for p in operation.parameters if p.role == TENSOR and not p.many]
    guides = {p.name: p.role.upper() for p in operation.parameters if p.role in (INDEX, MASK) and not p.many}
    unset = [f"{p.name} is None" for p in operation.parameters if p.role in (DTYPE, DEVICE)]
    # NumPy's scalars have dtypes, which would count; the door makes Python's numbers of them.
    unset += [_number_test(p.name, p.optional) for p in operation.parameters if p.role == SCALAR]
    # Engines take few other flags, and none in code that a compiler traces, where no error can be caught.
    unset += [_flag_test(p.name, p.optional) for p in operation.parameters if p.role == FLAG]
    # Engines also take what is no integer, each another thing.
    unset += [_integer_test(p.name, p.optional) for p in operation.parameters if p.role == COUNT]
    arguments = ", ".join(f"{p.name}={p.name}" if p.keyword else p.name for p in operation.parameters)
    values = ", ".join(p.name for p in operation.parameters)
    checked = not all(_passes(operation, d) for d in DTYPES.values())
    body: list[str] = []
    tests: list[str] = []
    if tensors and len(tensors) + len(guides) == len(operation.tensors):
        if len(tensors) == 1:
            tests = _one_tensor(tensors, guides, arguments, checked)
        else:
            tests = _more_tensors(tensors, guides, arguments, checked, split)
    elif len(guides) == len(operation.tensors) == 1:
        tests = _one_guide(guides, arguments)
    elif len(operation.tensors) == 1 and operation.tensors[0].role == TENSOR and not operation.tensors[0].variadic:
        tests = _several(operation.tensors[0].name, arguments, checked)
    if tests:
        if unset:
            tests = [f"if {' and '.join(unset)}:", *(" " + line for line in tests)]
        body = [
            "try:",
            *(" " + line for line in tests),
            "except Exception as error:",
            f" return rescue(error, {values})",
        ]
    body.append(f"return door({values})")
    return "\n".join([f"def call({_signature(operation, function)}):", *(" " + line for line in body)])


def _number_test(name: str, optional: bool) -> str:
    """The test that an option is a number of Python's own, or is not given."""
    absent = f"{name} is None or " if optional else ""
    return f"({absent}{name}.__class__ is float or {name}.__class__ is int)"


def _flag_test(name: str, optional: bool) -> str:
    """The test that an option is True or False, or is not given."""
    absent = f"{name} is None or " if optional else ""
    return f"({absent}{name} is False or {name} is True)"


def _integer_test(name: str, optional: bool) -> str:
    """The test that an option is an integer of Python's own, or is not given."""
    absent = f"{name} is None or " if optional else ""
    return f"({absent}{name}.__class__ is int)"


def _led(guides: dict[str, str], kind: str, same: str = "is") -> str:
    """The test that indices and masks are tensors of the same engine, already int64 and bool."""
    return "".join(
        f" and _type({name}) is {kind} and {name}.dtype {same} {kind}_{role}" for name, role in guides.items()
    )


def _one_guide(guides: dict[str, str], arguments: str) -> list[str]:
    """The short way for indices or a mask alone."""
    ((x, role),) = guides.items()
    return [
        f"if _type({x}) is HOST and {x}.dtype is HOST_{role}: return host({arguments})",
        f"_t = _type({x})",
        f"if _t is PRIME and {x}.dtype is PRIME_{role}: return prime({arguments})",
        f"if _t is FRESH and {x}.dtype == FRESH_{role}: return fresh({arguments})",
    ]


def _one_tensor(tensors: list[str], guides: dict[str, str], arguments: str, checked: bool) -> list[str]:
    """The short way for one tensor: its type, and its dtype where the law looks at it."""
    (x,) = tensors
    # NumPy has dtypes that are none of ours, such as those of the other byte order, so there is always a look at it.
    host, fast = f" and ((_d := {x}.dtype) is host_first or _d in host_ready)", f" and {x}.dtype in fast_ready[_t]"
    prime = fresh = ""
    if checked:
        prime = f" and ((_d := {x}.dtype) is prime_first or _d in prime_ready)"
        fresh = f" and (fresh_ready is None or {x}.itemsize == usual or {x}.dtype in fresh_ready)"
    lines = [
        f"if _type({x}) is HOST{_led(guides, 'HOST')}{host}: return host({arguments})",
        f"_t = _type({x})",
        f"if _t is PRIME{_led(guides, 'PRIME')}{prime}: return prime({arguments})",
        f"if _t is FRESH{_led(guides, 'FRESH', '==')}{fresh}: return fresh({arguments})",
    ]
    return lines if guides else [*lines, f"if _t in fast{fast}: return fast[_t]({arguments})"]


def _more_tensors(tensors: list[str], guides: dict[str, str], arguments: str, checked: bool, split: bool) -> list[str]:
    """The short way for two or more tensors: the type of the second one, then identity of dtypes.

    Where an engine's dtype objects are its own, the second one's type is enough: whatever has the same dtype is of that
    engine, or answers to its protocols. NumPy's are everybody's, so there all types count. What has no dtype at all
    raises AttributeError, which ``rescue`` sends to the door.
    """
    x, y, *others = tensors
    rest = "".join(f" and _d is {z}.dtype" for z in others)
    same = f"(_d := {x}.dtype) is {y}.dtype{rest}" if checked or others or split else f"{x}.dtype is {y}.dtype"
    types = " and ".join(f"_type({z}) is _t" for z in (x, *others))
    sizes = " == ".join(f"{z}.itemsize" for z in tensors)
    equal = " == ".join((f"(_d := {x}.dtype)", *(f"{z}.dtype" for z in (y, *others))))
    host = prime = fresh = fast = ""
    if checked:
        host, prime = " and (_d is host_first or _d in host_ready)", " and (_d is prime_first or _d in prime_ready)"
        fresh, fast = f" and ({x}.itemsize == even or _d in fresh_ready)", " and _d in fast_ready[_t]"
    plainly = " and ".join(f"_type({z}) is HOST" for z in (*others, x))
    hosted = " and ".join(f"((_u := _type({z})) is HOST or _u in HOSTS)" for z in (*others, x))
    own_host, own_prime, alone = "host", "prime", []
    if split:
        own_host = "(host_single if _d is host_first else host)"
        own_prime = "(prime_single if _d is prime_first else prime)"
        singles = " == ".join(("fresh_first", *(f"{z}.dtype" for z in tensors)))
        alone = [f" if {types} and {singles}{_led(guides, 'FRESH', '==')}: return fresh_single({arguments})"]
    lines = [
        f"if _type({y}) is HOST:",
        f" if {same}{host}{_led(guides, 'HOST')}:",
        f"  if {plainly}: return {own_host}({arguments})",
        f"  if {hosted}: return host({arguments})",
        f"  if _u in BOXES: return fast[_u]({arguments})",
        f"elif (_t := _type({y})) is PRIME:",
        f" if {same}{prime}{_led(guides, 'PRIME')}: return {own_prime}({arguments})",
        "elif _t is FRESH:",
        *alone,
        f" if {types} and (usual and usual == {sizes} or {equal}{fresh})"
        f"{_led(guides, 'FRESH', '==')}: return fresh({arguments})",
    ]
    if not others:
        lines += _number(x, y, guides, arguments, checked)
    if guides:
        led = _led(guides, "HOST").removeprefix(" and ")
        return [*lines, f"elif _t in BOXES and {led}:", f" if {same}{fast}: return fast[_t]({arguments})"]
    return [*lines, "elif _t in fast:", f" if {same}{fast}: return fast[_t]({arguments})"]


def _number(x: str, y: str, guides: dict[str, str], arguments: str, checked: bool) -> list[str]:
    """The short way for a tensor and a Python number that does not raise its kind: raw if the engine takes it so."""
    host = prime = fresh = ""
    if checked:
        host, prime, fresh = " and _d in host_ready", " and _d in prime_ready", " and _d in fresh_ready"
    lifted = arguments.replace(f"{y}={y}", f"{y}=_lift({y}, {x})") if f"{y}={y}" in arguments else ""
    if not lifted:
        lifted = ", ".join(f"_lift({y}, {x})" if a == y else a for a in arguments.split(", "))
    lines = [
        f"elif _t is float or _t is int and 0 <= {y} < 128:",
        f" _u = _type({x})",
    ]
    if not guides:
        lines += [
            f" if _u is HOST and host_raw and {x}.dtype is host_first: return host({arguments})",
            f" if _u is FRESH and fresh_raw and {x}.itemsize == usual: return fresh({arguments})",
        ]
    lines += [
        " if _u in LIFTS:",
        "  _lift, _takers = LIFTS[_u]",
        f"  if (_d := {x}.dtype) in _takers[_t]:",
    ]
    if guides:
        return [*lines, f"   return call({lifted})"]
    return [
        *lines,
        f"   if _u is HOST{host}: return host({arguments}) if host_raw else host({lifted})",
        f"   if _u is PRIME{prime}: return prime({arguments}) if prime_raw else prime({lifted})",
        f"   if _u is FRESH{fresh}: return fresh({arguments}) if fresh_raw else fresh({lifted})",
        f"   return call({lifted})",
    ]


def _several(name: str, arguments: str, checked: bool) -> list[str]:
    """The short way for a sequence of tensors of one type and dtype."""
    host = prime = fresh = ""
    if checked:
        host, prime, fresh = " and _d in host_ready", " and _d in prime_ready", " and _d in fresh_ready"
    return [
        f"if (_type({name}) is list or _type({name}) is tuple) and {name}:",
        f" if (_t := _type({name}[0])) is HOST or _t is PRIME or _t is FRESH:",
        f"  _d = {name}[0].dtype",
        f"  for _one in {name}:",
        "   if _type(_one) is not _t or (_one.dtype is not _d and (_t is not FRESH or _one.dtype != _d)): break",
        "  else:",
        f"   if _t is HOST{host}: return host({arguments})",
        f"   if _t is PRIME{prime}: return prime({arguments})",
        f"   if _t is FRESH{fresh}: return fresh({arguments})",
    ]


def _signature(operation: Operation, function: FunctionType) -> str:
    """The parameters, with ``None`` for every default: the real ones are set on the function."""
    code: CodeType = function.__code__
    first_default = code.co_argcount - len(function.__defaults__ or ())
    keyword_defaults = function.__kwdefaults__ or {}
    parts: list[str] = []
    starred = False
    for i, parameter in enumerate(operation.parameters):
        name = parameter.name
        if parameter.variadic:
            parts.append(f"*{name}")
            starred = True
        elif parameter.keyword:
            if not starred:
                parts.append("*")
                starred = True
            parts.append(f"{name}=None" if name in keyword_defaults else name)
        else:
            parts.append(f"{name}=None" if i >= first_default else name)
            if i + 1 == code.co_posonlyargcount:
                parts.append("/")
    return ", ".join(parts)
