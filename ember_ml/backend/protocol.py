"""The backend interface: the modules of a backend, and the members of each that the library uses.

A backend is a package with a module ``core`` (``Core``), a module for each category of operations (``math``,
``linearalg`` ...) and optionally the modules ``random``, ``transform``, ``control``, ``collectives`` and ``optim``.

========================  ============================================================================================
module                    if it is absent
========================  ============================================================================================
``core``                  the backend cannot be chosen: ``BackendNotFoundError``
a category of operations  its operations are looked up in the package itself; the composed ones still work, and the
                          others raise ``MissingOperationError``
``random``                all random operations raise ``MissingOperationError``
``transform``             ``grad``, ``vmap``, ``compile`` and the other transforms raise ``MissingOperationError``
``control``               ``cond`` and ``while_loop`` use Python control flow, and ``vectorized_map`` is a loop
``collectives``           collective operations raise ``MissingOperationError``, with one rank too
``optim``                 optimizers compute their update rules with operations
========================  ============================================================================================

A module must define every member of its protocol (``Core``, ``Random``, ``Transform``, ``Collectives``); if it does
not, an error names the missing members. Each member of ``CoreOptions``, ``TransformOptions``, ``Control``,
``ControlOptions`` and ``Optim`` is optional; its docstring says what happens without it.

In the protocols, tensors and dtypes are those of the engine, and a device is a result of ``find_device``, or ``None``
for the default device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

Tensor = Any
DType = Any
Device = Any

Flat = Callable[..., tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]
"""Function of tensors that returns two tuples of tensors: its outputs, and auxiliary values without gradients."""


class Core(Protocol):
    """``core``: the tensors, dtypes, devices and errors of an engine. All members are required."""

    @property
    def TENSORS(self) -> tuple[type, ...]:  # noqa: N802 - a constant of the module
        """Tensor types, first the one that the functions of the engine return."""

    @property
    def DTYPES(self) -> Mapping[str, DType]:  # noqa: N802
        """Dtypes by name; ``float32`` is required."""

    def convert(self, value: Any, dtype: DType | None, device: Device | None, /) -> Tensor:
        """Tensor from a number, nested sequence, host array or tensor of any engine; never a view of host memory.

        Without a dtype, host arrays keep theirs, and Python numbers get the default dtype of their type.
        """

    def scalar_like(self, number: Any, like: Tensor, /) -> Tensor:
        """0-d tensor of a Python number with the dtype and device of ``like``."""

    def cast(self, x: Tensor, dtype: DType, /) -> Tensor:
        """``x`` in another dtype."""

    def to_host(self, x: Tensor, /) -> Any:
        """Values of ``x`` as a NumPy array."""

    def devices(self) -> list[str]:
        """Names of the devices of this machine, the best one last."""

    def find_device(self, name: Any, /) -> Device:
        """Device object of the engine for a name. An unknown name raises a ``ValueError`` that lists the devices."""

    def device_of(self, x: Tensor, /) -> str:
        """Name of the device of ``x``."""

    def device_like(self, x: Tensor, /) -> Device | None:
        """Device object of the engine for the device of ``x``; ``None`` if tensors are on all devices."""

    def error_class(self, error: Exception, /) -> type[Exception] | None:
        """Class that replaces the class of an error of the engine, the same on every engine; ``None`` to keep it."""


class CoreOptions(Protocol):
    """Optional members of ``core``. "Absent" in a docstring says what happens without the member."""

    @property
    def SCALARS(self) -> tuple[type, ...]:  # noqa: N802
        """Types that are treated as 0-d tensors. Absent: none."""

    @property
    def GUESTS(self) -> tuple[type, ...]:  # noqa: N802
        """Tensor types of another engine that the functions of this one accept. Absent: none."""

    @property
    def STABLE_DTYPES(self) -> bool:  # noqa: N802
        """Whether each dtype is one object for the lifetime of the process. Absent: true."""

    @property
    def LAZY(self) -> bool:  # noqa: N802
        """Whether functions record computations, which run when values are read or evaluated. Absent: false."""

    @property
    def VIEWS(self) -> bool:  # noqa: N802
        """Whether a tensor that was broadcast takes no memory. Absent: false; models are built on NumPy first."""

    @property
    def RAW_NUMBERS(self) -> frozenset[str]:  # noqa: N802
        """Operations whose native functions receive Python numbers without conversion. Absent: all operations."""

    @property
    def AUTOCAST(self) -> frozenset[str]:  # noqa: N802
        """Operations whose functions receive floating tensors of different dtypes while ``autocasts``. Absent: none."""

    def start(self, x: Tensor, /) -> None:
        """Start to compute ``x`` if its computation was only recorded, without waiting for it. Absent: nothing."""

    def autocasts(self, x: Tensor, /) -> bool:
        """Whether the engine itself casts the operands of its functions at the moment. Absent: false."""

    def has_float64(self) -> bool:
        """Whether the default device supports float64. Absent: true if ``DTYPES`` contains it."""

    def cast_all(self, tensors: Sequence[Tensor], dtype: DType, /) -> Sequence[Tensor]:
        """Tensors in another dtype, with gradients. Absent: each is cast with ``cast``."""

    def settings(self) -> list[str]:
        """Settings of the engine that matter for results, in words, for ``ember-ml info``. Absent: none."""

    def own_device(self) -> Device | None:
        """Default device that the user set with the engine's own function, if any. Absent: none."""

    def compute_on(self, device: Device, /) -> None:
        """Make a device the default device of the engine itself, for engines whose arrays belong to no device.

        Functions of the engine then receive ``None`` for the default device. Absent: they receive the device.
        """

    def forwards(self, x: Tensor, /) -> Tensor:
        """``x`` without negative strides, which some consumers of DLPack reject. Absent: ``x`` is used."""

    def opaque(self, operation: Any, run: Callable[..., Any], values: tuple[Any, ...], /) -> Any:
        """``run(*values)``, computed by NumPy, as one step of the engine's gradients. Absent: ``run`` is called."""

    def substitute(self, call: Callable[..., Any], traceable: Callable[..., Any], /) -> None:
        """Make the compiler of the engine trace ``traceable`` in place of ``call``. Absent: it traces ``call``."""

    def implementation(self, operation: Any, /) -> Callable[..., Any] | None:
        """Function that computes an operation. Absent: the function of its name in the module of its category."""

    def define(self, operation: Any, definition: Callable[..., Any], /) -> Callable[..., Any]:
        """Function that computes an operation by its body, for example compiled. Absent: the body itself."""


class HostRandom(Protocol):
    """Members of ``Random`` that NumPy has too, which draws into host memory for all engines."""

    @property
    def HOST(self) -> bool:  # noqa: N802
        """Whether samplers may branch on values: true only for NumPy."""

    def is_host(self, device: Device | None, /) -> bool:
        """Whether numbers for a device are drawn in host memory and converted with ``adopt``."""

    def is_traced(self) -> bool:
        """Whether a compiler is tracing."""

    def has_double(self, device: Device | None, /) -> bool:
        """Whether the device supports float64."""

    def known(self, x: Tensor, /) -> Any:
        """Values of ``x`` as a host array; ``None`` while a compiler or ``vmap`` traces it."""

    def adopt(self, array: Any, device: Device | None, /) -> Tensor:
        """Tensor of a new host array, without a copy if the engine allows it."""

    def tensor(self, value: Any, dtype: str, device: Device | None, /) -> Tensor:
        """Tensor of a number or nested list, in the dtype of that name."""

    def cast(self, x: Tensor, dtype: str, /) -> Tensor:
        """``x`` in the dtype of that name."""

    def view(self, x: Tensor, dtype: str, /) -> Tensor:
        """Bits of ``x`` reinterpreted as another dtype of the same size."""

    def single(self, x: Tensor, /) -> Tensor:
        """``x`` in float32; unchanged if it is in float64."""

    def positions(self, start: int, count: int, device: Device | None, /) -> Tensor:
        """``count`` consecutive int64 integers from ``start``."""

    def where(self, condition: Tensor, x: Any, y: Any, /) -> Tensor:
        """``x`` where ``condition`` is true, else ``y``."""

    def floor(self, x: Tensor, /) -> Tensor:
        """Largest integer that is not greater than ``x``, in the same dtype."""

    def sqrt(self, x: Tensor, /) -> Tensor:
        """Square root, correctly rounded as in IEEE 754."""

    def sort(self, x: Tensor, /) -> Tensor:
        """``x`` sorted in ascending order along the last axis."""

    def argsort(self, x: Tensor, /) -> Tensor:
        """Indices that sort ``x`` in ascending order along the last axis; the sort is stable."""

    def largest(self, x: Tensor, /) -> Tensor:
        """Largest value of each row, as a column."""

    def cumsum(self, x: Tensor, /) -> Tensor:
        """Cumulative sums along the last axis."""

    def located(self, sums: Tensor, aims: Tensor, /) -> Tensor:
        """For each of the ``aims``, the number of ``sums`` of its row, without the last, that are not larger."""

    def spread(self, x: Tensor, shape: tuple[int, ...], /) -> Tensor:
        """``x`` broadcast to ``shape``, as a vector."""

    def word(self, x: Tensor, /) -> Tensor:
        """Integers below 2**32 in the dtype of random bits: uint32, or a 64-bit integer."""

    def keys(self, first: Tensor, second: Tensor, /) -> Tensor:
        """Keys with these words, in uint32, with a last axis of length 2."""

    def words(self, key: Any, start: int, count: int, device: Device | None = None, /) -> Tensor:
        """``count`` random words of Threefry-2x32 from index ``start``; word ``i`` belongs to block ``i // 2``."""

    def below(self, key: Any, start: int, count: int, limit: int, device: Device | None = None, /) -> Tensor:
        """Whether each of the words that ``words`` returns is below ``limit``, which is at most 2**32."""

    def pairs(self, key: Any, start: int, count: int, device: Device | None = None, /) -> tuple[Tensor, Tensor]:
        """Both words of ``count`` blocks of Threefry-2x32 from index ``start``."""

    def native_words(self, shape: tuple[int, ...], device: Device | None, /) -> Tensor:
        """Random words of the engine's generator."""

    def native_fractions(self, count: int, dtype: str, device: Device | None, /) -> Tensor | None:
        """Numbers in [0, 1) of the engine's generator; ``None`` if it does not support the dtype."""

    def native_normals(self, count: int, dtype: str, device: Device | None, /) -> Tensor | None:
        """Standard normal numbers of the engine's generator; ``None`` if it does not support the dtype."""


class Random(HostRandom, Protocol):
    """``random``: the functions that compute random bits and distributions, with the same values on every engine."""

    def pair_of(self, key: Tensor, /) -> tuple[Tensor, Tensor]:
        """Both words of a key whose values cannot be read on the host."""

    def pairs(
        self, key: Any, start: int, count: int, device: Device | None = None, offset: Tensor | None = None, /
    ) -> tuple[Tensor, Tensor]:
        """Both words of ``count`` blocks of Threefry-2x32 from index ``start + offset``, below 2**64.

        Compilers should see one operation. The words of a key are integers, or tensors that are zero-dimensional or
        have a last axis of length 1.
        """

    def cumsum(self, x: Tensor, axis: int = -1, /) -> Tensor:
        """Cumulative sums along an axis."""

    def cumprod(self, x: Tensor, /) -> Tensor:
        """Cumulative products along the first axis."""


class Transform(Protocol):
    """``transform``: transforms of functions of flat lists of tensors."""

    def value_and_grad(
        self, f: Flat, tensors: Sequence[Tensor], /
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Sequence[Tensor]]:
        """Output of ``f``, auxiliary values, and the gradient with respect to each tensor."""

    def vjp(
        self, f: Flat, tensors: Sequence[Tensor], /
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Callable[..., Sequence[Tensor]]]:
        """Outputs of ``f``, auxiliary values, and the function from cotangents to gradients."""

    def jvp(
        self, f: Flat, tensors: Sequence[Tensor], tangents: Sequence[Tensor], /
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Outputs of ``f``, their tangents, and auxiliary values."""

    def remembered(self, f: Callable[..., tuple[Tensor, ...]], tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]:
        """Outputs of ``f``, whose intermediate values are recomputed for the gradient."""

    def ruled(
        self, f: Callable[..., tuple[tuple[Tensor, ...], Any]], tensors: Sequence[Tensor], /
    ) -> tuple[Tensor, ...]:
        """Outputs of ``f``, which also returns the function from their cotangents to the gradients."""


class TransformOptions(Protocol):
    """Optional members of ``transform``."""

    @property
    def EXPIRES(self) -> bool:  # noqa: N802
        """Whether what a transform traces must not be used after it, not even what the function assigned to a model.

        Absent: false.
        """

    @property
    def REPEATS_DRAWS(self) -> bool:  # noqa: N802
        """Whether ``remembered`` repeats draws of the engine's own generator. Absent: false; none are made there."""

    def is_traced(self, x: Tensor, /) -> bool:
        """Whether operations on ``x`` are recorded. Absent: the library keeps track of differentiated tensors."""

    def vectorized(
        self, f: Callable[..., tuple[Tensor, ...]], axes: Sequence[int | None], tensors: Sequence[Tensor], /
    ) -> tuple[Tensor, ...]:
        """Outputs of ``f`` for each slice of the tensors, stacked. Absent: ``vmap`` is a loop."""

    def compiled_flat(self, f: Callable[..., Any], replaced: Callable[[], list[int]] | None, /) -> Callable[..., Any]:
        """Compiled ``f``, a function from tensors to a tuple. Absent, like ``compiled``: nothing is compiled.

        ``replaced``, if there are models, returns the places of the tensors that the caller does not use again, after
        ``f`` was traced. Each is held twice: by the sequence that the caller calls with, and by a model. If the
        compiled function has an attribute ``prepare``, that compiles for tensors like these and uses none of them up.
        """

    def key_tensor(self, key: Sequence[int], /) -> Any:
        """Both 32-bit halves of a random key, as ``compiled_flat`` takes them fastest. Absent: they are converted."""

    def compiled(self, f: Any, /) -> Callable[..., Any]:
        """``f`` compiled by a tracer of Python code, which supports models. Absent: ``compiled_flat`` is used.

        Requires all members below up to ``was_stopped``.
        """

    def is_of_compiler(self, error: Exception, /) -> bool:
        """Whether the compiler raised the error, not the traced function. Required by ``compiled``."""

    def uncompilable(self) -> int:
        """Counter that increases with every call that cannot be compiled. Required by ``compiled``."""

    def aliased(self, x: Tensor, /) -> Tensor:
        """Another tensor object with the same memory. Required by ``compiled``."""

    def is_tracing(self) -> bool:
        """Whether the compiler traces the caller, outside of other transforms. Required by ``compiled``."""

    def is_differentiated(self) -> bool:
        """Whether the caller is inside a gradient or another transform. Required by ``compiled``."""

    def is_better_in_parts(self, tensors: Sequence[Tensor], /) -> bool:
        """Whether to compile what a function differentiates, not the function itself. Required by ``compiled``."""

    def stop_compiler(self) -> None:
        """Make the compiler that traces the caller raise an error. Required by ``compiled``."""

    def was_stopped(self, error: Exception, /) -> bool:
        """Whether ``stop_compiler`` caused an error. Required by ``compiled``."""

    def recorded(self, f: Callable[..., Sequence[Tensor]], tensors: Sequence[Tensor], /) -> Any:
        """Kernels of ``f``, with ``tensors``, ``set`` and ``launch``, or ``None``. Absent: ``f`` is called."""

    def whole(self, f: Callable[..., Any], /) -> Callable[..., Any]:
        """``f`` compiled as one graph, or an error. Absent: ``ember_ml.testing`` does not check tracing."""


class Control(Protocol):
    """``control``: control flow in compiled code, in addition to the operations of that category."""

    def is_traced(self) -> bool:
        """Whether a compiler that supports control flow is tracing. Absent: false."""

    def branch(self, pred: Tensor, yes: Callable[[], Any], no: Callable[[], Any], /) -> Any:
        """Result of one of two functions, chosen when the compiled code runs. Required by ``is_traced``."""

    def loop(self, test: Callable[..., Any], step: Callable[..., Any], state: tuple[Tensor, ...], /) -> Any:
        """First state for which ``test`` is false, computed when the compiled code runs. Required by ``is_traced``."""

    def vectorized(self, f: Callable[..., Any], /) -> Callable[..., Any]:
        """``f`` for all slices of a tree along the first axis at once. Absent: a loop over the slices."""


class ControlOptions(Protocol):
    """Members of ``control`` that even an engine with ``is_traced`` may lack."""

    def steps(self, step: Callable[..., Any], carry: Any, xs: tuple[Tensor, ...], reverse: bool, /) -> Any:
        """Last carry and stacked outputs of ``step`` over the first axis of ``xs``, traced once. Absent: unrolled."""


class Collectives(Protocol):
    """``collectives``: how ranks reach each other, in addition to the operations of that category."""

    @property
    def TIMES_OUT(self) -> bool:  # noqa: N802
        """Whether collectives raise an error after the timeout; if not, the process is ended."""

    @property
    def BUCKET_BYTES(self) -> int:  # noqa: N802
        """Bytes of the tensors that are joined for one reduction: enough to make its latency small."""

    def start(self, timeout: float, /) -> None:
        """Connect the ranks of the launch; collectives may take ``timeout`` seconds. Called once."""

    def exchange(self, header: bytes, /) -> list[bytes]:
        """Headers of all ranks, which have one length, in the order of ranks."""

    def average(self, buckets: Sequence[Sequence[Tensor]], /) -> list[list[Tensor]]:
        """Means over all ranks of floating tensors. Those of a bucket have one dtype and device, and are joined."""


class Optim(Protocol):
    """``optim``: fused update rules, each a function with the name of the optimizer (``Adam``)."""

    def is_traced(self) -> bool:
        """Whether a compiler is tracing."""

    def supports(self, rule: str, parameters: list[Tensor], gradients: list[Tensor], /) -> bool:
        """Whether the fused rule supports these tensors. If not, the rule is computed with operations."""

    def allocate(self, parameters: list[Tensor], holders: int, /) -> list[Tensor]:
        """Tensors that a rule writes the new parameters to, with the values of the old ones if the rule needs them.

        They may be the old ones, if nothing refers to those but the list and ``holders`` (> 0) other objects.
        """


def members(protocol: type) -> list[str]:
    """Names of the members of a protocol, in order.

    >>> members(Optim)
    ['is_traced', 'supports', 'allocate']
    """
    bases = [base for base in reversed(protocol.__mro__) if base.__module__ == __name__]
    return list(dict.fromkeys(name for base in bases for name in vars(base) if not name.startswith("_")))


def lacking(module: ModuleType, protocol: type) -> list[str]:
    """Members of a protocol that a module does not define."""
    return [name for name in members(protocol) if not hasattr(module, name)]


if TYPE_CHECKING:
    # The type checker checks the included engines against the protocols.
    from ember_ml.backend.jax import collectives as _jax_collectives
    from ember_ml.backend.jax import control as _jax_control
    from ember_ml.backend.jax import core as _jax_core
    from ember_ml.backend.jax import random as _jax_random
    from ember_ml.backend.jax import transform as _jax_transform
    from ember_ml.backend.mlx import collectives as _mlx_collectives
    from ember_ml.backend.mlx import core as _mlx_core
    from ember_ml.backend.mlx import random as _mlx_random
    from ember_ml.backend.mlx import transform as _mlx_transform
    from ember_ml.backend.numpy import collectives as _numpy_collectives
    from ember_ml.backend.numpy import core as _numpy_core
    from ember_ml.backend.numpy import optim as _numpy_optim
    from ember_ml.backend.numpy import random as _numpy_random
    from ember_ml.backend.numpy import transform as _numpy_transform
    from ember_ml.backend.torch import collectives as _torch_collectives
    from ember_ml.backend.torch import control as _torch_control
    from ember_ml.backend.torch import core as _torch_core
    from ember_ml.backend.torch import optim as _torch_optim
    from ember_ml.backend.torch import random as _torch_random
    from ember_ml.backend.torch import transform as _torch_transform

    _core: Core = _numpy_core
    _core = _torch_core
    _core = _mlx_core
    _core = _jax_core
    _host: HostRandom = _numpy_random
    _random: Random = _torch_random
    _random = _mlx_random
    _random = _jax_random
    _transform: Transform = _numpy_transform
    _transform = _torch_transform
    _transform = _mlx_transform
    _transform = _jax_transform
    _control: Control = _torch_control
    _control = _jax_control
    _control_options: ControlOptions = _jax_control
    _collectives: Collectives = _numpy_collectives
    _collectives = _torch_collectives
    _collectives = _mlx_collectives
    _collectives = _jax_collectives
    _optim: Optim = _numpy_optim
    _optim = _torch_optim
