"""What dispatch needs of JAX: its tensor types, dtypes, conversions, devices and errors, and compiled functions."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from ember_ml import backend as backends
from ember_ml.backend.numpy.core import DTYPES as HOST_DTYPES
from ember_ml.backend.numpy.core import parse
from ember_ml.backend.numpy.sequences import assembled, held
from ember_ml.dispatch.roles import INDEX, TENSOR_ROLES
from ember_ml.dtypes import accumulated, default_dtype, indexed
from ember_ml.errors import AxisError, LinAlgError, warn

if TYPE_CHECKING:
    from ember_ml.dispatch import Operation

F = TypeVar("F", bound=Callable[..., Any])

X64_VARIABLE = "EMBER_ML_JAX_X64"


def _set_width() -> bool:
    """Turn on JAX's 64-bit dtypes, which it narrows otherwise, unless ``EMBER_ML_JAX_X64`` is 0."""
    if os.environ.get(X64_VARIABLE, "").strip() == "0":
        return bool(jax.config.jax_enable_x64)
    if os.environ.get("JAX_ENABLE_X64", "").strip().lower() in ("0", "false", "no", "n", "f", "off"):
        warn(
            "JAX_ENABLE_X64 turns off 64-bit dtypes, and the jax backend turns them on: JAX would narrow int64 and "
            f"float64 silently. Set {X64_VARIABLE}=0 to leave them off; 64-bit dtypes then raise UnsupportedError"
        )
    jax.config.update("jax_enable_x64", True)
    return True


HAS_X64 = _set_width()

# JAX computes in threads that a forked process does not have, so it may wait for them forever; jax-ml/jax#18852.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: backends.close_forked("jax"))

Array = jax.Array

# The type of all arrays that are no tracers; JAX 0.10 has no public name for it.
_CONCRETE = type(jax.device_put(np.zeros(()), jax.local_devices(backend="cpu")[0]))

TENSORS = (_CONCRETE, Tracer)

_WIDE = ("int64", "uint64", "float64", "complex128")
DTYPES = {name: dtype for name, dtype in HOST_DTYPES.items() if HAS_X64 or name not in _WIDE}

# Operations that JAX computes with a Python number as the second operand: it adapts to the array, as with us.
RAW_NUMBERS = frozenset((
    "add", "subtract", "multiply", "divide", "maximum", "minimum",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
))  # fmt: skip


def jitted(function: Callable[..., Any], *static: str) -> Callable[..., Any]:
    """``function`` as one compiled program for each set of shapes, dtypes and values of its ``static`` parameters.

    JAX calls such a program faster than it calls its own functions.
    """
    parameters = signature(function).parameters if static else {}
    unnamed = [p.name for p in parameters.values() if p.kind == p.POSITIONAL_ONLY and p.name in static]
    places = [i for i, name in enumerate(parameters) if name in unnamed]
    return jax.jit(function, static_argnums=places or None, static_argnames=None if places else static or None)


def static(*names: str) -> Callable[[F], F]:
    """Decorator form of ``jitted``."""
    return lambda function: jitted(function, *names)  # type: ignore[return-value]


def static_lists(*names: str) -> Callable[[F], F]:
    """``static`` for options that may be lists, or tuples of other integers than Python's."""
    return lambda function: wraps(function)(_freezing(function, jitted(function, *names)))  # type: ignore[return-value]


def _freezing(
    plain: Callable[..., Any], compiled: Callable[..., Any], places: Sequence[int] = (), names: Sequence[str] = ()
) -> Callable[..., Any]:
    """``compiled`` of arguments without lists, or ``plain`` if an option there is of a type that means several things.

    ``plain`` also says what must be an integer, as programs must not depend on floats in tuples: (2.0,) equals (2,).
    """

    def run(*args: Any, **options: Any) -> Any:
        try:
            fixed, named = [_frozen(arg) for arg in args], {name: _frozen(options[name]) for name in options}
        except TypeError:
            return plain(*args, **options)
        if all(type(fixed[i]) in _STATIC for i in places) and all(type(named[name]) in _STATIC for name in names):
            return compiled(*fixed, **named)
        return plain(*args, **options)

    return run


def _frozen(option: Any) -> Any:
    """``option``, or a tuple of Python integers, strings and such tuples for a list or tuple of integers."""
    if not isinstance(option, (list, tuple, range)):
        return option
    return tuple([_frozen(one) if isinstance(one, (int, str, list, tuple)) else index(one) for one in option])


# Types of options that are equal only to what means the same.
_STATIC = frozenset((type(None), bool, int, float, complex, str, tuple))


def precision(x: Array) -> Any:
    """Full precision for products of float32, which JAX rounds to TF32 or bfloat16 on accelerators by default."""
    is_single = x.dtype in (np.float32, np.complex64)
    return lax.Precision.HIGHEST if is_single and jax.config.jax_default_matmul_precision is None else None


def _narrow_implementation(operation: Operation) -> Callable[..., Any] | None:
    """Function of an operation while 64-bit dtypes are off: one that raises if the result must have one."""
    if operation.rule in (indexed, accumulated):
        return lambda *args, **kwargs: named("int64")
    place = backends.submodule(sys.modules[__package__], operation.category)
    found = getattr(place, operation.name, None)
    return found if callable(found) and not hasattr(found, "__operation__") else None


if not HAS_X64:
    implementation = _narrow_implementation


def is_traced(x: Any) -> bool:
    """Whether a transform of JAX traces ``x``, so that its values may not be available."""
    return isinstance(x, Tracer)


def is_compiling() -> bool:
    """Whether ``jax.jit`` traces the caller: it then traces calls of compiled functions too."""
    return isinstance(_identity(0), Tracer)


_identity = jax.jit(lambda x: x)


def define(operation: Operation, definition: Callable[..., Any]) -> Callable[..., Any]:
    """The body of an operation as one compiled program for each set of shapes, dtypes and options.

    Bodies that read values are not compiled: those that check indices, factor matrices, call functions of the user,
    draw random numbers, or have a result whose shape depends on data.
    """
    parameters = operation.parameters
    tensors = [p for p in parameters if p.role in TENSOR_ROLES]
    if (
        not operation.lazy
        or operation.category in _UNCOMPILED
        or not operation.module.startswith("ember_ml.ops.")
        or not tensors
        or any(p.variadic or p.role == INDEX or p.name == "key" for p in parameters)
        or any(p.many for p in tensors)
    ):
        return definition
    places = [i for i, p in enumerate(parameters) if p.role not in TENSOR_ROLES and not p.keyword]
    names = [p.name for p in parameters if p.role not in TENSOR_ROLES and p.keyword and p.name not in _VARIED]
    compiled = jax.jit(definition, static_argnums=places, static_argnames=names)
    return _freezing(definition, compiled, places, names)


# Options that programs take as numbers, because they change with every step of decoding.
_VARIED = ("offset",)
_UNCOMPILED = ("control", "creation", "device", "dtypes", "indexing", "io", "linearalg", "random")


def convert(value: Any, dtype: np.dtype[Any] | None, device: jax.Device | None) -> Array:
    """``value`` as an array of ``dtype``, or of the dtype that Python numbers and host arrays have by default."""
    if type(value) in (bool, int, float, complex):
        return from_host(parse(value, dtype or named(default_dtype(type(value)).name)), device)
    if isinstance(value, TENSORS):
        x = value if dtype is None else cast(value, dtype)
        return x if device is None or is_traced(x) or device in x.devices() else jax.device_put(x, device)
    has_tensors, has_arrays = held(value)
    if has_tensors:
        return assembled(value, dtype, named, lambda leaf, native: convert(leaf, native, device), jnp.stack)
    return from_host(parse(value, dtype, has_arrays), device)


def named(name: str) -> np.dtype[Any]:
    """Dtype of the engine with that name; an ``UnsupportedError`` if there is none."""
    return DTYPES[name] if name in DTYPES else backends.load("jax").dtype(name)


def from_host(array: np.ndarray[Any, Any], device: jax.Device | None) -> Array:
    """Copy of a host array. JAX may share its memory, or read it after this returns."""
    named(array.dtype.name)
    if not array.ndim and (device is None or device.platform == "cpu") and not is_compiling():
        # A compiled function takes a number a tenth of the time that device_put does.
        return _identity(array)
    return jax.device_put(array.copy(), device)


def scalar_like(number: float, like: Array) -> Array:
    """A Python number as a 0-d array of the dtype of ``like``."""
    # On the host: JAX moves it where it computes with ``like``, which takes a fifth of the time of device_put.
    return np.asarray(number, like.dtype)  # type: ignore[return-value]  # emberlint: ignore[EMB507] see above


def cast(x: Array, dtype: np.dtype[Any]) -> Array:
    """``x`` in another dtype."""
    return _cast(x, dtype)


def _converted(x: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        # JAX 0.10: a complex number with a real part of zero becomes False.
        return x != 0
    y = lax.convert_element_type(x, dtype)
    if dtype.kind == "u" and x.dtype.kind not in "biu":
        # XLA makes zeros of negative numbers, which are integers modulo the range elsewhere.
        return jnp.where(x < 0, lax.convert_element_type(x, np.int64 if HAS_X64 else np.int32).astype(dtype), y)
    # JAX 0.10: XLA takes the product with a converted bool for a choice, whereby zero times infinity is zero.
    return lax.optimization_barrier(y) if x.dtype.kind == "b" and dtype.kind not in "iu" else y


_cast = jax.jit(_converted, static_argnums=1)


def cast_all(tensors: Sequence[Array], dtype: np.dtype[Any]) -> Sequence[Array]:
    """Arrays in another dtype, in one program."""
    return _cast_all(list(tensors), dtype)


_cast_all = jax.jit(lambda xs, dtype: [_converted(x, dtype) for x in xs], static_argnums=1)


def to_host(x: Array) -> np.ndarray[Any, Any]:
    """Values of ``x`` as a host array."""
    return np.array(x)


def opaque(operation: Any, run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """Result of ``run``, which JAX cannot differentiate, with the gradient given by the operation's rule."""
    from ember_ml.backend.jax import gradients

    return gradients.run_on_host(operation, run, values)


def device_like(x: Array) -> jax.Device | None:
    """Device of ``x``; ``None`` for tracers, and for arrays that are on several."""
    if isinstance(x, Tracer):
        return None
    found = x.devices()
    return next(iter(found)) if len(found) == 1 else None


def device_of(x: Array) -> str:
    """Name of the device of ``x``, of the default device for tracers."""
    device = device_like(x) or backends.load("jax").device
    return _name(device)


def _name(device: jax.Device) -> str:
    kind = _KINDS.get(device.platform, device.platform)
    return kind if kind == "cpu" else f"{kind}:{device.id}"


# JAX calls GPUs of NVIDIA and AMD alike "gpu".
_KINDS = {"gpu": "cuda"}


def devices() -> list[str]:
    """Names of the available devices, the fastest last."""
    accelerators = [device for device in jax.local_devices() if device.platform != "cpu"]
    kinds = dict.fromkeys(_name(device).partition(":")[0] for device in accelerators)
    return ["cpu", *kinds, *map(_name, accelerators)]


def settings() -> list[str]:
    """Whether JAX has 64-bit dtypes."""
    return [f"64-bit dtypes {'on' if HAS_X64 else 'off'}"]


def find_device(name: Any) -> jax.Device:
    """Device object of the engine for a device name; ``gpu`` is the first accelerator."""
    if isinstance(name, jax.Device):
        return name
    if name == "cpu":
        return jax.local_devices(backend="cpu")[0]
    accelerators = [device for device in jax.local_devices() if device.platform != "cpu"]
    for device in accelerators:
        if name in ("gpu", _name(device), _name(device).partition(":")[0]):
            return device
    raise ValueError(f"device must be one of {', '.join(devices())} on the jax backend, got {str(name)!r}")


_AXIS_MESSAGES = re.compile(r"\baxis\b.* (is )?out of (bounds|range)|invalid axis|axis .* is out of bounds", re.DOTALL)
_MEMORY_MESSAGES = re.compile(r"RESOURCE_EXHAUSTED|Out of memory|bad_alloc")
_VALUE_MESSAGES = re.compile(
    r"shapes?|dimensions?|ndim|broadcast|reshape|concatenate|must be equal|rank|sizes?|bounds|number of elements"
)


def drop_note(error: Exception) -> None:
    """Remove the note of JAX that it has removed its frames from the traceback of an error."""
    if hasattr(error, "__notes__"):
        error.__notes__[:] = [note for note in error.__notes__ if "JAX_TRACEBACK_FILTERING" not in note]


def error_class(error: Exception) -> type[Exception] | None:
    """Error class of this mistake on every engine, or ``None`` if it is the error's own."""
    drop_note(error)
    message = str(error)
    if isinstance(error, np.linalg.LinAlgError):
        return LinAlgError
    if isinstance(error, (np.exceptions.AxisError, ValueError, TypeError)) and _AXIS_MESSAGES.search(message):
        return AxisError
    if isinstance(error, jax.errors.JAXTypeError):
        return TypeError
    if isinstance(error, TypeError) and _VALUE_MESSAGES.search(message) and not _KIND_MESSAGES.search(message):
        return ValueError
    if isinstance(error, RuntimeError) and not isinstance(error, NotImplementedError):
        return MemoryError if _MEMORY_MESSAGES.search(message) else ValueError
    return None


# Those that begin with the name of a parameter are our own.
_KIND_MESSAGES = re.compile(r"^\w+ must |dtype|unexpected keyword|positional argument|unhashable|valid JAX type")
