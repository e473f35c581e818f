"""Devices: where tensors are stored, which are available, and their memory."""

from __future__ import annotations

from ember_ml import backend as _backends
from ember_ml.dispatch import op
from ember_ml.dtypes import free
from ember_ml.errors import warn as _warn
from ember_ml.types import DeviceLike, Tensor, TensorLike


@op(free, differentiable=False)
def get_device(tensor: TensorLike | None = None) -> str:
    """Name of the device that ``tensor`` is on; without a tensor, of the device on which tensors are created.

    >>> get_device([1.0, 2.0]) == get_device() == get_default_device()
    True
    """
    return get_default_device() if tensor is None else _backends.current().device_of(tensor)


@op(free)
def to_device(x: TensorLike, device: DeviceLike, /) -> Tensor:
    """``x`` on ``device``; ``x`` itself if it is already there.

    All MLX devices share memory, so MLX moves nothing.

    >>> get_device(to_device([1.0, 2.0], "cpu"))
    'cpu'
    """
    ...


@op(free, lazy=False, differentiable=False)
def get_available_devices(backend: object = None) -> list[str]:
    """Names of the devices of a backend, ``"cpu"`` first.

    Args:
        backend: name of the backend, by default the active one.

    >>> get_available_devices("numpy")
    ['cpu']
    """
    return (_backends.current() if backend is None else _backends.load(str(backend))).devices()


_missed: set[tuple[str, str]] = set()


@op(free, lazy=False, differentiable=False)
def set_default_device(name: object, fallback: bool = False) -> None:
    """Set the device on which the active backend creates tensors, for the whole process.

    Args:
        name: a device name, or ``None`` for the device without this choice: that of ``EMBER_ML_DEVICE``, or of
            ``ember-ml backend set``, or the engine's best.
        fallback: if the device is not available, use the CPU and warn once, instead of raising.

    >>> set_default_device("cpu")
    >>> get_default_device()
    'cpu'
    >>> set_default_device(None)
    """
    backend = _backends.current()
    if fallback and name is not None and not is_available(name):
        if (backend.name, str(name)) not in _missed:
            _missed.add((backend.name, str(name)))
            _warn(f"set_default_device: the {backend.name} engine has no device {str(name)!r}; the CPU is used")
        name = "cpu"
    placed = None if name is None else _backends.DeviceChoice(backend.find_device(name), "set_default_device")
    backend.choose_device(placed)


@op(free, lazy=False, differentiable=False)
def get_default_device() -> str:
    """Name of the device on which the active backend creates tensors: its best one, unless another was chosen.

    >>> get_default_device() in get_available_devices()
    True
    """
    return get_device(0)


@op(free, lazy=False, differentiable=False)
def is_available(name: object, /) -> bool:
    """Whether the active backend has this device.

    ``"gpu"`` is the backend's best accelerator, whatever its name.

    >>> is_available("cpu"), is_available("abacus")
    (True, False)
    """
    try:
        _backends.current().find_device(name)
    except (TypeError, ValueError):
        return False
    return True


@op(free, lazy=False, differentiable=False)
def prefer_device(*names: object) -> str:
    """First of these devices that the active backend has.

    >>> prefer_device("abacus", "cpu")
    'cpu'
    """
    for name in names:
        if is_available(name):
            return str(name)
    wanted = ", ".join(map(str, names)) or "no name"
    raise ValueError(
        f"one of the names must be a device that is here ({', '.join(get_available_devices())}), got {wanted}"
    )


@op(free, lazy=False, differentiable=False)
def synchronize(device: DeviceLike | None = None) -> None:
    """Wait until all work submitted to a device is done.

    >>> synchronize("cpu")
    """
    ...


@op(free, lazy=False, differentiable=False)
def memory_usage(device: DeviceLike | None = None) -> int:
    """Bytes in use on a device: by the process on the CPU, by tensors on an accelerator.

    >>> memory_usage() >= 0
    True
    """
    return memory_info(device)["allocated"] or 0


@op(free, lazy=False, differentiable=False)
def memory_info(device: DeviceLike | None = None) -> dict[str, int | None]:
    """Memory of a device in bytes: ``allocated``, ``peak``, ``total`` and ``free``.

    A value is ``None`` if the system does not report it. On the CPU with NumPy and PyTorch, ``allocated`` and ``peak``
    count the whole process; elsewhere they count tensors.

    >>> sorted(memory_info())
    ['allocated', 'free', 'peak', 'total']
    """
    ...
