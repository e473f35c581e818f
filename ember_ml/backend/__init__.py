"""Backends: their registry and loading, the choice of the active backend, and of the default device of each.

Order of precedence: ``use_backend``, ``set_backend``, the environment variable ``EMBER_ML_BACKEND``, the file
``~/.ember/backend``, detection.

Order of precedence for the device: ``use_backend(name, device=...)``, ``set_default_device`` and ``set_backend(name,
device=...)``, of which the later call counts, the engine's own setting (``torch.set_default_device``), the environment
variable ``EMBER_ML_DEVICE``, the file, the engine's best device.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from contextvars import ContextVar
from functools import cache, wraps
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ember_ml import older_names
from ember_ml.backend import protocol
from ember_ml.dtypes import DTYPES, EmberDType, as_dtype, of_kind
from ember_ml.errors import (
    BackendNotFoundError,
    DeviceNotFoundError,
    ForkError,
    MissingOperationError,
    UnsupportedError,
    warn,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ember_ml.dispatch import Operation

__all__ = [
    "auto_select_backend",
    "clear_backend",
    "get_available_backends",
    "get_backend",
    "get_backend_module",
    "set_backend",
    "use_backend",
    "using_backend",
]

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "EMBER_ML_BACKEND"
DEVICE_VARIABLE = "EMBER_ML_DEVICE"
GROUP = "ember_ml.backends"

# Maximum length of the file ~/.ember/backend, far more than the names of a backend and a device need.
_LONGEST_CHOICE = 256


class Home(NamedTuple):
    """Module of a backend, package of its engine, and the command to install it."""

    module: str
    engine: str
    install: str


class DeviceChoice(NamedTuple):
    """Default device of a backend, as its engine represents it, and the source of the choice."""

    device: Any
    source: str


class KeptChoice(NamedTuple):
    """What the file of the persistent choice names; an empty string where it names nothing."""

    backend: str
    device: str

    def __str__(self) -> str:
        return f"{self.backend} {self.device}".rstrip()


def _own(name: str, engine: str, install: str) -> tuple[str, Home]:
    return name, Home(f"ember_ml.backend.{name}", engine, install)


OWN: dict[str, Home] = dict(
    [
        _own("numpy", "numpy", "pip install numpy"),
        _own("torch", "torch", "pip install 'ember-ml[torch]'"),
        _own("mlx", "mlx", "pip install 'ember-ml[mlx]'"),
        _own("jax", "jax", "pip install 'ember-ml[jax]'"),
    ]
)

# Internal engines, which users cannot select. They compute on tensors that only the library creates, such as those of
# differentiation on NumPy.
DIFFERENTIATION = "numpy.differentiation"
HIDDEN: dict[str, Home] = dict([_own(DIFFERENTIATION, "autograd", "pip install autograd")])


def takes_numbers(function: F) -> F:
    """Mark a function of a backend that accepts a Python number as its second operand.

    Dispatch passes a float with a floating tensor, or an integer from 0 to 127 with any tensor.
    """
    function.takes_numbers = True  # type: ignore[attr-defined]
    return function


def native_for(native: Callable[..., Any], *dtypes: str, bare: bool = False) -> Callable[[F], F]:
    """Decorator for a function of a backend that works around the native function of the engine for some dtypes.

    Args:
        native: the native function, which is correct for ``dtypes``.
        dtypes: names of dtypes, or of dtype kinds as in ``isdtype``. Dispatch calls ``native`` directly for tensors of
            these dtypes; the decorated function must accept them too.
        bare: call ``native`` directly only if there are no keyword arguments.
    """
    names = frozenset(name for one in dtypes for name in ([one] if one in DTYPES else [d.name for d in of_kind(one)]))

    def mark(function: F) -> F:
        function.native_for = native, names, bare  # type: ignore[attr-defined]
        return function

    return mark


class Backend:
    """A loaded engine: its module, and the functions that dispatch calls.

    The submodule ``core`` must define:

    - ``TENSORS``: the tensor types, the exact one first;
    - ``DTYPES``: native dtypes by name;
    - the functions ``convert``, ``scalar_like``, ``cast``, ``to_host``, ``device_like``, ``device_of``,
      ``find_device``, ``devices`` and ``error_class``.

    It may define:

    - ``SCALARS``: types of values that are equivalent to 0-d tensors;
    - ``STABLE_DTYPES``: False if dtype objects are created on each access;
    - ``LAZY``: True if functions record computations, which ``eval`` runs;
    - ``VIEWS``: True if a tensor that was broadcast takes no memory;
    - ``start``: starts to compute a tensor whose computation was recorded, and does not wait;
    - ``RAW_NUMBERS``: names of the operations whose native function should receive Python numbers unchanged; all by
      default;
    - ``has_float64``: whether the default device supports float64;
    - ``AUTOCAST`` and ``autocasts``: names of the operations whose tensors the engine itself casts at the moment;
    - ``cast_all``: casts many tensors at once;
    - ``settings``: settings of the engine that matter for results, in words;
    - ``own_device``: the default device that the user set with the engine's own function;
    - ``compute_on``: makes a device the default device of the engine itself;
    - ``forwards``: copies a tensor with negative strides, which some readers of DLPack do not support;
    - ``GUESTS``: tensor types of another engine that its functions accept;
    - ``opaque``: calls a function that NumPy computes, invisible to the gradients of the engine;
    - ``substitute``: sets the Python function that the compiler of the engine traces in place of another;
    - ``implementation``: function that implements an operation, in place of the lookup by name;
    - ``define``: function that runs the body of an operation, such as a compiled one.

    ``protocol.py`` says what the module has to hold, and what it may.
    Operations are looked up by name in the submodule of their category, or in the module itself.
    """

    def __init__(self, name: str, module: ModuleType) -> None:
        core = _check_core(module)
        self.name = name
        # The name that users select. Tensors of an internal engine appear to users as NumPy arrays.
        self.chosen_as = "numpy" if name in HIDDEN else name
        self.is_host = name == "numpy"
        self.module = module
        self.core = core
        self.tensors: tuple[type, ...] = core.TENSORS
        self.scalars: tuple[type, ...] = getattr(core, "SCALARS", ())
        self.guests: tuple[type, ...] = getattr(core, "GUESTS", ())
        self.kinds: tuple[type, ...] = self.tensors + self.guests
        self.dtypes: dict[str, Any] = core.DTYPES
        self.names: dict[Any, EmberDType] = {value: DTYPES[key] for key, value in core.DTYPES.items()}
        self.stable_dtypes: bool = getattr(core, "STABLE_DTYPES", True)
        self.is_lazy: bool = getattr(core, "LAZY", False)
        self.has_views: bool = getattr(core, "VIEWS", False)
        self.raw_numbers: frozenset[str] | None = getattr(core, "RAW_NUMBERS", None)
        self.has_float64: Callable[[], bool] = getattr(core, "has_float64", lambda: "float64" in core.DTYPES)
        self.convert: Callable[..., Any] = core.convert
        self.scalar_like: Callable[..., Any] = core.scalar_like
        self.cast: Callable[..., Any] = core.cast
        self.autocast: frozenset[str] = getattr(core, "AUTOCAST", frozenset())
        self.autocasts: Callable[[Any], bool] = getattr(core, "autocasts", lambda x: False)
        self.cast_all: Callable[..., Sequence[Any]] = getattr(core, "cast_all", self._cast_each)
        self.to_host: Callable[..., Any] = core.to_host
        self.device_like: Callable[..., Any] = core.device_like
        self.device_of: Callable[..., str] = core.device_of
        self.find_device: Callable[..., Any] = core.find_device
        self.devices: Callable[[], list[str]] = core.devices
        self.error_class: Callable[[Exception], type[Exception] | None] = core.error_class
        self.forwards: Callable[[Any], Any] = getattr(core, "forwards", lambda x: x)
        self.substitute: Callable[..., None] | None = getattr(core, "substitute", None)
        self.start: Callable[[Any], None] = getattr(core, "start", lambda x: None)
        self.control: Any = submodule(module, "control")
        self.random: Any = self._random_part()
        self.settings: Callable[[], list[str]] = getattr(core, "settings", list)
        self.own_device: Callable[[], Any] = getattr(core, "own_device", _no_device)
        self.compute_on: Callable[[Any], None] | None = getattr(core, "compute_on", None)
        # What set_default_device or set_backend chose, and what is used if they chose nothing, once it is known.
        self.chosen_device: DeviceChoice | None = None
        self.usual_device: DeviceChoice | None = None
        self.refusal: Refusal | None = None
        self.compiles_operations: bool = hasattr(core, "define")
        self.define: Callable[..., Callable[..., Any]] = getattr(core, "define", lambda operation, body: body)
        if hasattr(core, "implementation"):
            self.implementation = core.implementation  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"<{self.name} backend>"

    def _cast_each(self, tensors: Sequence[Any], dtype: Any) -> Sequence[Any]:
        return [self.cast(x, dtype) for x in tensors]

    def _random_part(self) -> Any:
        """The module of random numbers; in its place, if there is none, what raises ``MissingOperationError``."""
        found: ModuleType | None = getattr(self.module, "random", None) or submodule(self.module, "random")
        if found is None:
            return Refusal(lambda: self.lacks("random numbers", "random"))
        check_members(found, protocol.HostRandom if self.chosen_as == "numpy" else protocol.Random)
        return found

    def transport(self) -> protocol.Collectives:
        """The module that connects this rank with the others."""
        found = submodule(self.module, "collectives")
        if found is None:
            raise self.lacks("collective operations", "collectives")
        check_members(found, protocol.Collectives)
        return cast(protocol.Collectives, found)

    def lacks(self, what: str, module: str) -> MissingOperationError:
        """The error for something that needs a module which the backend does not have."""
        return MissingOperationError(
            f"the {self.name} backend has no {what}: there is no module {self.module.__name__}.{module}"
        )

    def dtype_of(self, x: Any) -> EmberDType:
        """Portable dtype of a tensor of this engine."""
        try:
            return self.names[x.dtype]
        except KeyError:
            raise UnsupportedError(
                f"the dtype must be one of {', '.join(self.dtypes)}, got the {self.chosen_as} dtype {x.dtype}"
            ) from None

    def dtype(self, value: object) -> Any:
        """Native dtype for a dtype or its name."""
        wanted = as_dtype(value)
        if wanted.name not in self.dtypes:
            raise UnsupportedError(
                f"dtype must be one that the {self.chosen_as} engine has on some device ({', '.join(self.devices())}), "
                f"one of {', '.join(self.dtypes)}; got {wanted.name}"
            )
        # Other engines raise by themselves, since another device than the default one may have float64.
        if wanted.name == "float64" and self.compute_on is not None and not self.has_float64():
            raise UnsupportedError(
                f"dtype must be one that {self.device_choice().device} of the {self.chosen_as} engine has, got float64"
            )
        return self.dtypes[wanted.name]

    @property
    def device(self) -> Any:
        """Device on which tensors are created; ``None`` if the engine itself has a default device that is kept equal.

        While a compiler of the engine traces, what is read here are constants that it guards.
        """
        return None if self.compute_on is not None else self.device_choice().device

    def device_choice(self) -> DeviceChoice:
        """Default device in the current thread or task, and where the choice comes from."""
        if _state.blocks:
            device = block_device(self.chosen_as)
            if device is not None:
                return DeviceChoice(device, "use_backend")
        if self.chosen_device is not None:
            return self.chosen_device
        own = self.own_device()
        if own is not None:
            return DeviceChoice(own, f"{self.name}'s own default device")
        return usual_device(self.name) if self.usual_device is None else self.usual_device

    def choose_device(self, choice: DeviceChoice | None) -> None:
        """Make a choice for the process, or withdraw it."""
        self.chosen_device = choice
        self.follow_device()

    def follow_device(self) -> None:
        """Make the default device that of the engine itself, if the engine computes everything there."""
        if self.refusal is None and self.compute_on is not None:
            self.compute_on(self.device_choice().device)

    def place(self, name: object, source: str) -> DeviceChoice:
        """Choice of the device of this name; an error that says who asked for a device that is not available."""
        try:
            return DeviceChoice(self.find_device(name), source)
        except ValueError as error:
            raise DeviceNotFoundError(f"{source}: {error}") from None

    def implementation(self, operation: Operation) -> Callable[..., Any] | None:
        """Function of this engine that implements an operation; ``None`` if there is none.

        Operations declared outside ``ember_ml.ops`` are only composed of other operations.
        """
        if not operation.module.startswith("ember_ml.ops."):
            return None
        place = submodule(self.module, operation.category) or self.module
        found = None if place is self.core else getattr(place, operation.name, None)
        # The modules of engines have the operations too, for callers of get_backend_module().
        return found if callable(found) and not hasattr(found, "__operation__") else None

    def close(self, refusal: Refusal) -> None:
        """Replace everything that computes with ``refusal``. Names and tensor types are kept."""
        self.refusal = refusal
        for name in (*vars(self), "dtype", "dtype_of", "implementation", "provider"):
            if name not in _KEPT:
                setattr(self, name, refusal)

    def provider(self, operation: Operation) -> str:
        """``own`` (function of the engine), ``defined`` (composed of other operations) or ``missing``."""
        if self.implementation(operation) is not None:
            return "own"
        return "missing" if operation.definition is None else "defined"


_KEPT = frozenset(
    {"name", "chosen_as", "is_host", "tensors", "scalars", "kinds", "chosen_device", "usual_device", "refusal"}
)


def _no_device() -> None:
    """Result of ``own_device`` on engines without such a function."""


class Refusal:
    """Replacement for the attributes of a closed backend: every use raises the error that ``explain`` returns."""

    def __init__(self, explain: Callable[[], Exception]) -> None:
        self._explain = explain

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise self._explain()

    __call__ = __getattr__ = __getitem__ = __contains__ = __iter__ = __len__ = __bool__ = _refuse


def _check_core(module: ModuleType) -> Any:
    """``module.core``, after a check that it defines what ``protocol.Core`` requires."""
    core = getattr(module, "core", None)
    if core is None:
        raise AttributeError(f"the module {module.__name__} must have a submodule core, got none")
    place = getattr(core, "__name__", f"{module.__name__}.core")
    check_members(core, protocol.Core)
    for name in protocol.members(protocol.Core):
        if name.islower() and not callable(getattr(core, name)):
            raise TypeError(f"{place}.{name} must be a function, got {getattr(core, name)!r}")
    tensors = core.TENSORS
    if not (isinstance(tensors, tuple) and tensors and all(isinstance(kind, type) for kind in tensors)):
        raise TypeError(f"{place}.TENSORS must be a tuple of types, got {tensors!r}")
    if "float32" not in core.DTYPES:
        raise ValueError(f"{place}.DTYPES must have float32 among its names, got {', '.join(core.DTYPES)}")
    for name in core.DTYPES:
        if name not in DTYPES:
            raise ValueError(f"{place}.DTYPES must have names of dtypes, got {name!r}")
    return core


def check_members(module: ModuleType, kind: type) -> None:
    """Raise an error that names what a module of a backend lacks of its protocol."""
    lacking = protocol.lacking(module, kind)
    if lacking:
        raise AttributeError(f"{module.__name__} must define {', '.join(lacking)}")


def submodule(package: ModuleType, name: str) -> ModuleType | None:
    """Submodule of a package, imported if necessary; ``None`` if there is none."""
    full = f"{package.__name__}.{name}"
    # The package has the attribute once the import is complete, also if another thread imports it; torch < 2.13 cannot
    # trace a look-up in sys.modules while modules are imported.
    found = getattr(package, name, None)
    if isinstance(found, ModuleType) and found.__name__ == full:
        return found
    if not hasattr(package, "__path__") or importlib.util.find_spec(full) is None:
        return None
    return importlib.import_module(full)


def host_module(name: str) -> ModuleType:
    """Submodule of the NumPy engine, which need not be loaded: that takes longer than to read a small file."""
    return importlib.import_module(f"{OWN['numpy'].module}.{name}")


class Block:
    """Open ``use_backend`` block and the block around it. Once closed, it has no effect in any thread or task."""

    __slots__ = ("closed", "device", "name", "outer")

    def __init__(self, name: str, outer: Block | None, device: Any = None) -> None:
        self.name, self.outer, self.device, self.closed = name, outer, device, False


class _State:
    """Process-wide state. It survives a reload of this module."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.backend: Backend | None = None
        self.source = ""
        self.blocks = 0
        self.loaded: dict[str, Backend] = {}
        self.listeners: list[Callable[[], None]] = []
        self.load_hooks: list[Callable[[Backend], None]] = []
        self.close_hooks: list[Callable[[Backend, Refusal], None]] = []
        self.context: ContextVar[Block | None] = ContextVar("ember_ml_backend", default=None)


_state: _State = globals().get("_state") or _State()


def homes() -> dict[str, Home]:
    """All known backends: those of this library, and those that other distributions register."""
    return {**OWN, **_third_party()}


@cache
def _third_party() -> dict[str, Home]:
    """Backends registered by entry points, under names that are not taken."""
    from importlib import metadata  # imported late, since it is slow

    found: dict[str, Home] = {}
    owners = dict.fromkeys([*OWN, *HIDDEN], "ember-ml")
    for point in metadata.entry_points(group=GROUP):
        distribution = point.dist.name if point.dist else point.name
        module = point.value.partition(":")[0].strip()
        if point.name in owners:
            reason = f"that name is taken by {owners[point.name]}"
        elif not all(part.isidentifier() for part in module.split(".")):
            reason = f"its entry point must name a module, got {point.value!r}"
        else:
            owners[point.name] = distribution
            found[point.name] = Home(module, module.partition(".")[0], f"pip install {distribution}")
            continue
        warn(f"the backend {point.name!r} that the distribution {distribution} adds is ignored: {reason}")
    return found


def get_available_backends() -> list[str]:
    """Names of the backends whose engine is installed. No engine is imported.

    >>> "numpy" in get_available_backends()
    True
    """
    return [name for name, home in homes().items() if _installed(home.engine)]


def _installed(package: str) -> bool:
    if package in sys.modules:
        return sys.modules[package] is not None
    return importlib.util.find_spec(package) is not None


def load(name: str, source: str = "") -> Backend:
    """Backend of this name, imported on first use.

    Args:
        source: who requested the backend, for error messages.
    """
    asked = f"{source}: " if source else ""
    if not isinstance(name, str):
        raise TypeError(f"{asked}the name of a backend must be a string, such as 'numpy', got {name!r}")
    found = None if name in HIDDEN else _state.loaded.get(name)
    if found is not None:
        return found
    home = homes().get(name)
    if home is None:
        raise BackendNotFoundError(
            f"{asked}the name of a backend must be a known one, got {name!r}{_hint(name)}; {_choices()}"
        )
    return _import(name, home, asked)


def load_hidden(name: str) -> Backend:
    """Internal engine of this name, imported on first use."""
    return _state.loaded.get(name) or _import(name, HIDDEN[name], "")


def _import(name: str, home: Home, asked: str) -> Backend:
    with _state.lock:
        if name not in _state.loaded:
            try:
                backend = Backend(name, importlib.import_module(home.module))
                for hook in _state.load_hooks:
                    hook(backend)
                if backend.compute_on is not None:
                    backend.usual_device = _usual_device(backend)
                    if backend.usual_device.source != "detection":
                        backend.follow_device()
            except (KeyboardInterrupt, DeviceNotFoundError):
                raise
            except BaseException as error:  # importing a module may raise SystemExit
                raise BackendNotFoundError(
                    f"{asked}the {name} backend must import, got {type(error).__name__}: {error}; {_choices()}; to "
                    f"install: {home.install}"
                ) from error
            _state.loaded[name] = backend
    return _state.loaded[name]


def _choices() -> str:
    available = get_available_backends()
    absent = [f"{name} ({home.install})" for name, home in homes().items() if name not in available]
    return f"installed: {', '.join(available)}" + (f"; not installed: {', '.join(absent)}" if absent else "")


def _hint(name: str) -> str:
    """Suggestion of the backend whose name is closest to an unknown one, as the end of a message."""
    from difflib import get_close_matches

    near = get_close_matches(name.strip().lower(), homes(), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def loaded() -> list[Backend]:
    """Backends imported so far that are not closed."""
    return [backend for backend in _state.loaded.values() if backend.refusal is None]


def close(name: str, explain: Callable[[], Exception]) -> None:
    """Make every use of a loaded backend raise the error that ``explain`` returns.

    It takes no lock, since it must be safe right after a fork.
    """
    backend = _state.loaded.get(name)
    if backend is not None and backend.refusal is None:
        refusal = Refusal(explain)
        for hook in _state.close_hooks:
            hook(backend, refusal)
        backend.close(refusal)


def close_forked(name: str) -> None:
    """Close a backend that computes in threads, in a process that was forked and does not have them."""
    close(
        name,
        lambda: ForkError(
            f"the {name} backend cannot compute in a process that was forked from one that has used it; start "
            "processes with the 'spawn' method (multiprocessing.get_context('spawn'), "
            "DataLoader(multiprocessing_context='spawn')), or choose another engine in this one, such as "
            "ember_ml.set_backend('numpy')"
        ),
    )


def loaded_as(name: str) -> Backend:
    """Imported backend of this name, including internal ones."""
    return _state.loaded[name]


def current() -> Backend:
    """Active backend, chosen now if none has been chosen yet."""
    if _state.blocks:
        name = block_backend()
        if name:
            return _state.loaded[name]
    return _state.backend or _choose()


def block_backend() -> str:
    """Name of the backend of the innermost ``use_backend`` block around the caller; empty outside of any block."""
    block = _innermost()
    return "" if block is None else block.name


def block_device(name: str) -> Any:
    """Device of the innermost ``use_backend`` block for this backend that names one; ``None`` if there is none."""
    block = _state.context.get()
    while block is not None and (block.closed or block.name != name or block.device is None):
        block = block.outer
    return None if block is None else block.device


def usual_device(name: str) -> DeviceChoice:
    """Default device of a loaded backend for which the program chose none, and the source."""
    backend = _state.loaded[name]
    with _state.lock:
        if backend.usual_device is None:
            backend.usual_device = _usual_device(backend)
        return backend.usual_device


def _usual_device(backend: Backend) -> DeviceChoice:
    """Device from environment or file, else the best one of the engine."""
    wanted = os.environ.get(DEVICE_VARIABLE, "").strip()
    # NumPy has only the CPU, so that the variable is about other engines, unless nobody asked for NumPy.
    detected = backend is _state.backend and _state.source == "detection"
    if wanted and (backend.chosen_as != "numpy" or detected):
        return backend.place(wanted, f"environment variable {DEVICE_VARIABLE}")
    kept = _kept_device(backend.chosen_as)
    if kept:
        return backend.place(kept, f"file {choice_file()}")
    return DeviceChoice(backend.find_device(best_device(backend.devices())), "detection")


def _kept_device(name: str) -> str:
    """Device that the file names for a backend; empty if it names none, or cannot be read.

    An unreadable file is an error only where it must name the backend, so that ``set_backend`` works without it.
    """
    try:
        kept = kept_choice()
    except BackendNotFoundError:
        return ""
    return kept.device if kept.backend == name else ""


def best_device(names: list[str]) -> str:
    """Best of the devices of an engine.

    >>> best_device(["cpu", "mps"]), best_device(["cpu", "cuda", "cuda:0"]), best_device(["cpu"])
    ('mps', 'cuda', 'cpu')
    """
    # CUDA's device without a number is the current one, which torch.cuda.set_device changes.
    return next((name for name in ("cuda", "mps", "gpu") if name in names), names[-1])


def _innermost() -> Block | None:
    """Innermost open block around the caller. Another thread may have closed a block of this context."""
    block = _state.context.get()
    while block is not None and block.closed:
        block = block.outer
    return block


def process_backend() -> Backend | None:
    """Process-wide backend if no ``use_backend`` block is open in any thread, otherwise ``None``."""
    return None if _state.blocks else _state.backend


def _choose() -> Backend:
    with _state.lock:
        if _state.backend is None:
            name, source = _first_choice()
            found = load(name, source)
            _activate(found, source)
            found.usual_device = None
        assert _state.backend is not None
        return _state.backend


def _first_choice() -> tuple[str, str]:
    """Name of the backend from environment, file or detection, and its source."""
    name = os.environ.get(VARIABLE, "").strip()
    if name:
        return name, f"environment variable {VARIABLE}"
    name = kept_choice().backend
    if name:
        return name, f"file {choice_file()}"
    return auto_select_backend()[0], "detection"


def kept_choice() -> KeptChoice:
    """Names of the backend and of its device in the file of the persistent choice; empty if there is none."""
    import stat

    path = None
    try:
        path = choice_file()
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError("not a regular file")
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST_CHOICE + 1)
        if len(text) > _LONGEST_CHOICE:
            raise OSError(f"longer than {_LONGEST_CHOICE} characters")
    except (FileNotFoundError, RuntimeError):
        # Path.home() raises RuntimeError for users without a home directory.
        return KeptChoice("", "")
    except (OSError, UnicodeDecodeError) as error:
        raise BackendNotFoundError(
            f"the backend choice in {path} must be the name of a backend, got a file that cannot be read ({error}); "
            f"correct or remove it; {_choices()}"
        ) from error
    # A name with other blanks in it is reported as a whole.
    backend, _, device = text.strip().partition(" ")
    return KeptChoice(backend, device.strip())


def choice_file() -> Path:
    """File of the persistent choice."""
    from pathlib import Path  # imported late, since it takes a tenth of the import time of the package

    return Path.home() / ".ember" / "backend"


def _activate(backend: Backend | None, source: str) -> None:
    _state.backend, _state.source = backend, source
    _announce()


def _forget_devices() -> None:
    """Drop the devices that ``set_backend`` chose, and look again for those that environment and file name."""
    for backend in loaded():
        backend.usual_device = None
        if backend.chosen_device is not None and backend.chosen_device.source == "set_backend":
            backend.choose_device(None)


def _announce() -> None:
    for listener in _state.listeners:
        listener()


def on_change(listener: Callable[[], None]) -> None:
    """Call ``listener`` whenever ``process_backend()`` may have changed."""
    _state.listeners.append(listener)


def on_load(hook: Callable[[Backend], None]) -> None:
    """Call ``hook`` with every backend before it is first used."""
    _state.load_hooks.append(hook)


def on_close(hook: Callable[[Backend, Refusal], None]) -> None:
    """Call ``hook`` with a backend that is being closed, and the ``Refusal`` that replaces its attributes."""
    _state.close_hooks.append(hook)


def set_backend(
    name: str | None = None, persist: bool = False, *, device: str | None = None, backend: str | None = None
) -> None:
    """Make a backend the active one for the whole process.

    Args:
        name: name of the backend, such as ``"numpy"``.
        persist: also write the choice to ``~/.ember/backend``, for later processes.
        device: default device of the backend from now on, as with ``set_default_device``. Without it, the default
            device stays as it is.
        backend: older spelling of ``name``.

    >>> set_backend("numpy", device="cpu")
    >>> get_backend()
    'numpy'
    """
    if backend is not None and name is not None:
        raise TypeError(f"set_backend: only one of name and backend must be given, got {name!r} and {backend!r}")
    chosen: Any = backend if name is None else name
    found = load(chosen, "set_backend")
    placed = None if device is None else found.place(device, "set_backend")
    with _state.lock:
        _activate(found, "set_backend")
        if placed is not None:
            found.choose_device(placed)
    if persist:
        _write_choice(KeptChoice(chosen, "" if device is None else str(device)))
        found.usual_device = None


def _write_choice(choice: KeptChoice) -> None:
    from emberlint import atomic  # imported late, since it is rarely needed

    atomic.write(choice_file(), f"{choice}\n", parents=True)


def clear_backend(persisted: bool = False) -> None:
    """Clear the process-wide choice of ``set_backend``. The next use of a backend chooses again.

    Args:
        persisted: also remove ``~/.ember/backend``.
    """
    if persisted:
        choice_file().unlink(missing_ok=True)
    with _state.lock:
        _activate(None, "")
        _forget_devices()


def get_backend() -> str:
    """Name of the active backend.

    >>> with use_backend("numpy"):
    ...     get_backend()
    'numpy'
    """
    return current().name


def choice_source() -> str:
    """Source of the choice of the active backend."""
    backend = current()
    if _state.blocks and block_backend() == backend.name:
        return "use_backend"
    return _state.source


def get_backend_module() -> ModuleType:
    """Module of the active backend. It has every operation of ``ember_ml.ops``, computed by that engine.

    >>> with use_backend("numpy"):
    ...     get_backend_module().__name__
    'ember_ml.backend.numpy'
    >>> get_backend_module().add([1.0], 2.0).tolist()
    [3.0]
    """
    return current().module


class use_backend(ContextDecorator):  # noqa: N801 - reads as a verb where it is used
    """Context manager or decorator that activates a backend for the current thread or task only.

    Args:
        name: name of the backend, such as ``"numpy"``.
        device: default device of the backend in the block. MLX has one default device for all threads, which is
            changed while the block is open.

    >>> with use_backend("numpy", device="cpu"):
    ...     get_backend()
    'numpy'
    """

    def __init__(self, name: str, *, device: str | None = None) -> None:
        self.name = name
        self.device = device
        self._blocks: list[Block] = []

    def __call__(self, function: F) -> F:
        import inspect  # imported late, since it is slow

        if inspect.isasyncgenfunction(function):
            raise TypeError(
                f"use_backend: a decorated function must not be an asynchronous generator, got {function.__name__}; "
                "open a with block inside it, and close it before it yields"
            )
        # Calling a coroutine or generator function does not run its body, so the block is opened when the body runs.
        if inspect.iscoroutinefunction(function):
            return cast(F, _wrap_coroutine(self, function))
        if inspect.isgeneratorfunction(function):
            return cast(F, _wrap_generator(self, function))
        return super().__call__(function)

    def _recreate_cm(self) -> use_backend:
        return type(self)(self.name, device=self.device)

    def __enter__(self) -> None:
        backend = load(self.name, "use_backend")
        device = None if self.device is None else backend.place(self.device, "use_backend").device
        self._blocks.append(enter(backend, device))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block = _innermost()
        while block is not None and block not in self._blocks:
            block = block.outer
        # None is found if a suspended generator is closed by another thread or task.
        block = block or self._blocks[-1]
        self._blocks.remove(block)
        leave(block)


def _wrap_coroutine(block: use_backend, function: Callable[..., Any]) -> Callable[..., Any]:
    """Coroutine function whose body runs in a block."""

    @wraps(function)
    async def coroutine(*args: Any, **options: Any) -> Any:
        with block._recreate_cm():
            return await function(*args, **options)

    return coroutine


def _wrap_generator(block: use_backend, function: Callable[..., Any]) -> Callable[..., Any]:
    """Generator function whose body runs in a block. The block is closed while the generator is suspended."""

    @wraps(function)
    def generator(*args: Any, **options: Any) -> Any:
        body = function(*args, **options)
        resume, value = body.send, None
        while True:
            with block._recreate_cm():
                try:
                    found = resume(value)
                except StopIteration as end:
                    return end.value
            try:
                resume, value = body.send, (yield found)
            except BaseException as error:
                resume, value = body.throw, error

    return generator


using_backend = use_backend


def active(backend: Backend) -> AbstractContextManager[None]:
    """Context manager in which ``backend`` creates tensors and computes on host arrays."""
    return nullcontext() if current() is backend else use_backend(backend.chosen_as)


def enter(backend: Backend, device: Any = None) -> Block:
    """Open a block in this context, with a default device of the engine or none; ``leave`` closes it."""
    with _state.lock:
        _state.blocks += 1
        if _state.blocks == 1:
            _announce()
    block = Block(backend.chosen_as, _innermost(), device)
    _state.context.set(block)
    if device is not None:
        backend.follow_device()
    return block


def leave(block: Block) -> None:
    """Close the block that ``enter`` opened, in this context or another."""
    block.closed = True
    _state.context.set(_innermost())
    with _state.lock:
        _state.blocks -= 1
        if _state.blocks == 0:
            _announce()
    if block.device is not None:
        _state.loaded[block.name].follow_device()


def auto_select_backend() -> tuple[str, str]:
    """Preferred backend on this machine and its device.

    torch with CUDA, MPS or the CPU comes first, then MLX on macOS, then JAX with an accelerator, then NumPy.

    >>> name, device = auto_select_backend()
    >>> name in get_available_backends()
    True
    """
    available = get_available_backends()
    for name in ("torch", "mlx", "jax"):
        if name not in available or (name == "mlx" and sys.platform != "darwin"):
            continue
        try:
            device = best_device(load(name, "detection").devices())
        except BackendNotFoundError:
            continue
        if name != "jax" or device != "cpu":
            return name, device
    return "numpy", "cpu"


def missing(operation: Operation, backend: Backend) -> MissingOperationError:
    """Error for an operation that ``backend`` does not support, which names the backends that do."""
    having = []
    for name in get_available_backends():
        try:
            other = load(name)
        except BackendNotFoundError:
            continue
        if other.provider(operation) != "missing":
            having.append(name)
    return MissingOperationError(
        f"the {backend.name} backend has no {operation.name}; "
        + (f"these have it: {', '.join(having)}" if having else "no installed backend has it")
    )


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return older_names.attribute(__name__, name)
