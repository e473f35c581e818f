"""Devices: where tensors live, which there are, and what memory they have."""

from __future__ import annotations

from ember_ml import backend as _backends
from ember_ml.dispatch import op
from ember_ml.dtypes import free
from ember_ml.errors import warn as _warn
from ember_ml.types import DeviceLike, Tensor, TensorLike


@op(free, differentiable=False)
def get_device(x: TensorLike, /) -> str:
    """The name of the device that ``x`` is on.

    >>> get_device([1.0, 2.0]) == get_default_device()
    True
    """
    return _backends.current().device_of(x)


@op(free)
def to_device(x: TensorLike, device: DeviceLike, /) -> Tensor:
    """``x`` on another device; ``x`` itself if it is there already.

    MLX keeps tensors in memory that all its devices share, so nothing moves there.

    >>> get_device(to_device([1.0, 2.0], "cpu"))
    'cpu'
    """
    ...


@op(free, lazy=False, differentiable=False)
def get_available_devices(backend: object = None) -> list[str]:
    """The names of the devices of a backend, by default of the active one; ``"cpu"`` first.

    >>> get_available_devices("numpy")
    ['cpu']
    """
    return (_backends.current() if backend is None else _backends.load(str(backend))).devices()


_missed: set[tuple[str, str]] = set()


@op(free, lazy=False, differentiable=False)
def set_default_device(name: object, fallback: bool = False) -> None:
    """Nothing; from now on the active backend makes tensors on that device, or with ``None`` where the engine would.

    Args:
        fallback: use the CPU if the device is absent, with a warning the first time, instead of raising.

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
    backend.device = None if name is None else backend.find_device(name)


@op(free, lazy=False, differentiable=False)
def get_default_device() -> str:
    """The name of the device on which the active backend makes tensors.

    >>> get_default_device() in get_available_devices()
    True
    """
    return get_device(0)


@op(free, lazy=False, differentiable=False)
def is_available(name: object, /) -> bool:
    """Whether the active backend has that device; ``"gpu"`` is its best accelerator, whatever it is called.

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
    """The first of these devices that the active backend has.

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
    """Nothing, once everything that was asked of a device has been computed.

    >>> synchronize("cpu")
    """
    ...


@op(free, lazy=False, differentiable=False)
def memory_usage(device: DeviceLike | None = None) -> int:
    """The bytes in use on a device: those of the process on the CPU, those of tensors on an accelerator.

    >>> memory_usage() >= 0
    True
    """
    return memory_info(device)["allocated"] or 0


@op(free, lazy=False, differentiable=False)
def memory_info(device: DeviceLike | None = None) -> dict[str, int | None]:
    """The bytes ``allocated`` on a device now and at their ``peak``, its ``total`` and what of it is ``free``.

    ``None`` stands for what the system does not tell. On the CPU of NumPy and PyTorch ``allocated`` and ``peak`` are
    those of the whole process; elsewhere they are those of tensors.

    >>> sorted(memory_info())
    ['allocated', 'free', 'peak', 'total']
    """
    ...
