"""What an engine is: the modules of a backend, and what the library uses of each.

A backend is a package with a module ``core`` (``Core``), a module for each category of operations (``math``,
``linearalg`` ...) and, as far as the engine has them, the modules ``random``, ``transform``, ``control`` and ``optim``.

========================  ============================================================================================
module                    if it is absent
========================  ============================================================================================
``core``                  the backend cannot be chosen: ``BackendNotFoundError``
a category of operations  its operations are looked up in the package itself; those with a body work all the same, and
                          the others raise ``MissingOperationError``
``random``                every random number raises ``MissingOperationError``
``transform``             ``grad``, ``vmap``, ``compile`` and the other transforms raise ``MissingOperationError``
``control``               Python decides in ``cond`` and ``while_loop``, and ``vectorized_map`` is a loop
``optim``                 optimizers compute their rules operation by operation
========================  ============================================================================================

A module that is there has every member of its protocol (``Core``, ``Random``, ``Transform``); one that has not is an
error that names what is missing. The members of ``CoreOptions``, ``TransformOptions``, ``Control`` and ``Optim`` may be
left out, each by itself: the docstrings say what that means.

In what follows, a tensor is one of the engine, a dtype the engine's own object, and a device what ``find_device``
returns, or ``None`` for the default one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

Tensor = Any
DType = Any
Device = Any

Flat = Callable[..., tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]
"""A function of tensors that returns two tuples of them: its outputs, and what passes by and is not differentiated."""


class Core(Protocol):
    """``core``: the tensors, dtypes and devices of an engine, and its errors. Dispatch needs all of it."""

    @property
    def TENSORS(self) -> tuple[type, ...]:  # noqa: N802 - a constant of the module
        """The tensor types; the one that the engine's functions return is the first."""

    @property
    def DTYPES(self) -> Mapping[str, DType]:  # noqa: N802
        """The dtypes by their portable names; ``float32`` is one of them."""

    def convert(self, value: Any, dtype: DType | None, device: Device | None, /) -> Tensor:
        """A number, a nested sequence, a host array or a tensor of any engine as a tensor; never a view of host memory.

        Without a dtype, host arrays keep theirs, and Python numbers have the default of their kind.
        """

    def scalar_like(self, number: Any, like: Tensor, /) -> Tensor:
        """A Python number as a 0-d tensor of the dtype of ``like``, on its device."""

    def cast(self, x: Tensor, dtype: DType, /) -> Tensor:
        """``x`` in another dtype."""

    def to_host(self, x: Tensor, /) -> Any:
        """The values of ``x`` as a NumPy array."""

    def devices(self) -> list[str]:
        """The names of the devices of this machine, the best last."""

    def find_device(self, name: Any, /) -> Device:
        """The engine's own object for a device name; a ``ValueError`` that lists those available for another name."""

    def device_of(self, x: Tensor, /) -> str:
        """The name of the device that ``x`` is on."""

    def device_like(self, x: Tensor, /) -> Device | None:
        """The engine's own object for the device that ``x`` is on; ``None`` if tensors are on all of them."""

    def error_class(self, error: Exception, /) -> type[Exception] | None:
        """The class that an error of the engine has on every engine; ``None`` if it has that class already."""


class CoreOptions(Protocol):
    """What ``core`` may define besides. Without a member, its docstring's second sentence holds."""

    @property
    def SCALARS(self) -> tuple[type, ...]:  # noqa: N802
        """Types of values that are as good as 0-d tensors. Absent: there are none."""

    @property
    def GUESTS(self) -> tuple[type, ...]:  # noqa: N802
        """Tensor types of another engine that the functions of this one take as they are. Absent: there are none."""

    @property
    def STABLE_DTYPES(self) -> bool:  # noqa: N802
        """Whether a dtype is one object, as long as the process lives. Absent: it is."""

    @property
    def RAW_NUMBERS(self) -> frozenset[str]:  # noqa: N802
        """Operations whose native functions are best given a Python number as it is. Absent: all of them."""

    def has_float64(self) -> bool:
        """Whether the default device computes in float64. Absent: it does, if ``DTYPES`` has it."""

    def forwards(self, x: Tensor, /) -> Tensor:
        """``x`` without negative strides, which not every reader of DLPack takes. Absent: there are none."""

    def opaque(self, operation: Any, run: Callable[..., Any], values: tuple[Any, ...], /) -> Any:
        """``run(*values)``, which NumPy computes, for the engine's gradients. Absent: it is called as it is."""

    def substitute(self, call: Callable[..., Any], traceable: Callable[..., Any], /) -> None:
        """Make the engine's compiler trace ``traceable`` wherever ``call`` is called. Absent: it traces ``call``."""

    def own(self, operation: Any, /) -> Callable[..., Any] | None:
        """What computes an operation. Absent: the function of its name in the module of its category."""


class HostRandom(Protocol):
    """The part of ``Random`` that NumPy has too, which draws into host memory for all engines."""

    @property
    def HOST(self) -> bool:  # noqa: N802
        """Whether samplers may look at values: true for NumPy alone."""

    def is_host(self, device: Device | None, /) -> bool:
        """Whether numbers for a device are drawn in host memory, and ``adopt`` takes them over."""

    def is_traced(self) -> bool:
        """Whether a compiler is tracing."""

    def has_double(self, device: Device | None, /) -> bool:
        """Whether the device computes in float64."""

    def known(self, x: Tensor, /) -> Any:
        """The values of ``x`` as a host array; ``None`` where a compiler or ``vmap`` traces and there are none."""

    def adopt(self, array: Any, device: Device | None, /) -> Tensor:
        """A fresh host array as a tensor, without a copy where the engine allows it."""

    def tensor(self, value: Any, dtype: str, device: Device | None, /) -> Tensor:
        """A number, or a nested list of them, as a tensor of the dtype of that name."""

    def cast(self, x: Tensor, dtype: str, /) -> Tensor:
        """``x`` in the dtype of that name."""

    def view(self, x: Tensor, dtype: str, /) -> Tensor:
        """The bits of ``x`` as another dtype of the same size."""

    def single(self, x: Tensor, /) -> Tensor:
        """``x`` in float32, unless it is in float64."""

    def positions(self, start: int, count: int, device: Device | None, /) -> Tensor:
        """``count`` integers from ``start`` on, in int64."""

    def where(self, condition: Tensor, x: Any, y: Any, /) -> Tensor:
        """``x`` where the condition holds, else ``y``."""

    def floor(self, x: Tensor, /) -> Tensor:
        """The largest integer that is not above, in the same dtype."""

    def sqrt(self, x: Tensor, /) -> Tensor:
        """The square root, rounded as IEEE 754 says."""

    def sort(self, x: Tensor, /) -> Tensor:
        """The values of ``x`` in ascending order along the last axis."""

    def argsort(self, x: Tensor, /) -> Tensor:
        """The positions that sort ``x`` in ascending order along the last axis, equal values in order."""

    def largest(self, x: Tensor, /) -> Tensor:
        """The largest value in each row, as a column."""

    def cumsum(self, x: Tensor, /) -> Tensor:
        """Cumulative sums along the last axis."""

    def located(self, sums: Tensor, aims: Tensor, /) -> Tensor:
        """For each of a row's aims, the number of that row's sums, but for the last, that are not larger."""

    def spread(self, x: Tensor, shape: tuple[int, ...], /) -> Tensor:
        """``x`` broadcast to ``shape``, as a vector."""

    def word(self, x: Tensor, /) -> Tensor:
        """Integers below 2**32 in the dtype that random bits are held in: 32 bits unsigned, or 64 bits."""

    def keys(self, first: Tensor, second: Tensor, /) -> Tensor:
        """Keys of these words, in uint32, along a last axis of two."""

    def words(self, key: Any, start: int, count: int, device: Device | None = None, /) -> Tensor:
        """``count`` random words of Threefry-2x32 from number ``start`` on: word ``i`` is of block ``i // 2``."""

    def pairs(self, key: Any, start: int, count: int, device: Device | None = None, /) -> tuple[Tensor, Tensor]:
        """Both words of ``count`` blocks of Threefry-2x32 from number ``start`` on."""

    def native_words(self, shape: tuple[int, ...], device: Device | None, /) -> Tensor:
        """Words of the engine's own generator."""

    def native_fractions(self, count: int, dtype: str, device: Device | None, /) -> Tensor | None:
        """Numbers in [0, 1) of the engine's own generator; ``None`` for a dtype that it does not make."""

    def native_normals(self, count: int, dtype: str, device: Device | None, /) -> Tensor | None:
        """Standard normal numbers of the engine's own generator; ``None`` for a dtype that it does not make."""


class Random(HostRandom, Protocol):
    """``random``: the functions that the random bits and the distributions are made of, which are the same on all."""

    def pair_of(self, key: Tensor, /) -> tuple[Tensor, Tensor]:
        """The two words of a key whose values are not known on the host."""

    def cumsum(self, x: Tensor, axis: int = -1, /) -> Tensor:
        """Cumulative sums along an axis."""

    def cumprod(self, x: Tensor, /) -> Tensor:
        """Cumulative products along the first axis."""


class Transform(Protocol):
    """``transform``: the transforms of functions of flat lists of tensors."""

    def value_and_grad(
        self, f: Flat, tensors: Sequence[Tensor], /
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Sequence[Tensor]]:
        """The one output of ``f``, what passes by, and the gradient for each tensor."""

    def vjp(
        self, f: Flat, tensors: Sequence[Tensor], /
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Callable[..., Sequence[Tensor]]]:
        """The outputs of ``f``, what passes by, and the function from cotangents to gradients."""

    def jvp(
        self, f: Flat, tensors: Sequence[Tensor], tangents: Sequence[Tensor], /
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The outputs of ``f``, their tangents, and what passes by."""

    def remembered(self, f: Callable[..., tuple[Tensor, ...]], tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]:
        """The outputs of ``f``, whose intermediate values are computed again for the gradient."""

    def ruled(
        self, f: Callable[..., tuple[tuple[Tensor, ...], Any]], tensors: Sequence[Tensor], /
    ) -> tuple[Tensor, ...]:
        """The outputs of ``f``, which also returns the function from their cotangents to the gradients."""


class TransformOptions(Protocol):
    """What ``transform`` may define besides."""

    def is_traced(self, x: Tensor, /) -> bool:
        """Whether what is done with ``x`` is recorded. Absent: the tensors being differentiated are remembered."""

    def vectorized(
        self, f: Callable[..., tuple[Tensor, ...]], axes: Sequence[int | None], tensors: Sequence[Tensor], /
    ) -> tuple[Tensor, ...]:
        """The outputs of ``f`` for each slice of the tensors, stacked. Absent: ``vmap`` is a loop."""

    def compiled_flat(self, f: Callable[..., Any], /) -> Callable[..., Any]:
        """``f``, from tensors to a tuple of tensors, compiled. Absent, and ``compiled`` too: nothing is compiled."""

    def compiled(self, f: Any, /) -> Callable[..., Any]:
        """``f`` compiled by a tracer of Python, which sees through models. Absent: ``compiled_flat`` is used.

        It comes with ``is_of_compiler``, ``uncompilable`` and ``aliased``.
        """

    def is_of_compiler(self, error: Exception, /) -> bool:
        """Whether the compiler raised the error, not the function that it traced. Absent with ``compiled``."""

    def uncompilable(self) -> int:
        """A number that grows with every call of what cannot be compiled. Absent with ``compiled``."""

    def aliased(self, x: Tensor, /) -> Tensor:
        """The same values in the same memory, in another object. Absent with ``compiled``."""

    def whole(self, f: Callable[..., Any], /) -> Callable[..., Any]:
        """``f`` as one graph; an error where that cannot be. Absent: ``ember_ml.testing`` does not check tracing."""


class Control(Protocol):
    """``control``: control flow in compiled code, beside the operations of that category."""

    def is_traced(self) -> bool:
        """Whether a compiler with control flow of its own is tracing. Absent: it never is."""

    def branch(self, pred: Tensor, yes: Callable[[], Any], no: Callable[[], Any], /) -> Any:
        """The result of one of two functions, chosen when the compiled code runs. Absent with ``is_traced``."""

    def loop(self, test: Callable[..., Any], step: Callable[..., Any], state: tuple[Tensor, ...], /) -> Any:
        """The first state that fails ``test``, found when the compiled code runs. Absent with ``is_traced``."""

    def vectorized(self, f: Callable[..., Any], /) -> Callable[..., Any]:
        """``f`` for all slices of a tree along the first axis at once. Absent: one slice after the other."""


class Optim(Protocol):
    """``optim``: fused forms of the rules of optimizers, each a function of the optimizer's name (``Adam``)."""

    def is_traced(self) -> bool:
        """Whether a compiler is tracing."""

    def serves(self, rule: str, parameters: list[Tensor], gradients: list[Tensor], /) -> bool:
        """Whether the fused form of a rule takes these tensors. If not, the rule is computed by operations."""

    def room(self, parameters: list[Tensor], /) -> list[Tensor]:
        """Tensors that a rule writes the new parameters into."""


def members(protocol: type) -> list[str]:
    """The names of the members of a protocol, in order.

    >>> members(Optim)
    ['is_traced', 'serves', 'room']
    """
    bases = [base for base in reversed(protocol.__mro__) if base.__module__ == __name__]
    return list(dict.fromkeys(name for base in bases for name in vars(base) if not name.startswith("_")))


def lacking(module: ModuleType, protocol: type) -> list[str]:
    """The members of a protocol that a module does not define."""
    return [name for name in members(protocol) if not hasattr(module, name)]


if TYPE_CHECKING:
    # The type checker holds our own engines to the protocols.
    from ember_ml.backend.mlx import core as _mlx_core
    from ember_ml.backend.mlx import random as _mlx_random
    from ember_ml.backend.mlx import transform as _mlx_transform
    from ember_ml.backend.numpy import core as _numpy_core
    from ember_ml.backend.numpy import optim as _numpy_optim
    from ember_ml.backend.numpy import random as _numpy_random
    from ember_ml.backend.numpy import transform as _numpy_transform
    from ember_ml.backend.torch import control as _torch_control
    from ember_ml.backend.torch import core as _torch_core
    from ember_ml.backend.torch import optim as _torch_optim
    from ember_ml.backend.torch import random as _torch_random
    from ember_ml.backend.torch import transform as _torch_transform

    _core: Core = _numpy_core
    _core = _torch_core
    _core = _mlx_core
    _host: HostRandom = _numpy_random
    _random: Random = _torch_random
    _random = _mlx_random
    _transform: Transform = _numpy_transform
    _transform = _torch_transform
    _transform = _mlx_transform
    _control: Control = _torch_control
    _optim: Optim = _numpy_optim
    _optim = _torch_optim
