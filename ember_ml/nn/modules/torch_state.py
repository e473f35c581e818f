"""State dictionaries of ``torch.nn`` models, converted to the paths and axes of this library's layers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ember_ml import ops
from ember_ml.extend import activate, load_backend, unwrap
from ember_ml.nn.modules.convolution import Convolution
from ember_ml.nn.modules.linear import Linear
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.recurrent import Recurrent


def convert_torch_state(module: Module, state: Mapping[str, Any], flattened: Mapping[str, int]) -> dict[str, Any]:
    """State for ``load_state_dict`` of ``module`` from that of a ``torch.nn`` model with the same structure.

    >>> state = {"weight": [[1.0, 2.0, 3.0]], "bias": [0.5]}
    >>> convert_torch_state(Linear(3, 1), state, {})["weight"].tolist()
    [[1.0], [2.0], [3.0]]
    """
    layers = dict(module.named_modules())
    for path, channels in flattened.items():
        layer = layers.get(path)
        if not isinstance(layer, Linear) or channels < 1 or layer.in_features % channels:
            raise ValueError(
                f"{type(module).__name__}: flattened must have the paths of Linear layers, and numbers of channels "
                f"that divide their in_features, got {channels} for {path!r}, which is {layer!r}"
            )
    found: dict[str, Any] = {}
    with activate(load_backend(module.backend)):
        for path, value in state.items():
            prefix, _, name = path.rpartition(".")
            layer = layers.get(prefix)
            if isinstance(layer, Recurrent):
                path, convert = _recurrent(layer, prefix, name)
            else:
                convert = _conversion(layer, name, flattened.get(prefix, 1))
            found[path] = convert(ops.asarray(unwrap(value)))
    return found


def _conversion(layer: Module | None, name: str, channels: int) -> Callable[[Any], Any]:
    """Function from a tensor of torch's layer to that of ``layer``."""
    if isinstance(layer, Linear) and name == "weight" and channels > 1:
        return lambda x: _unflattened(x, channels)

    def convert(x: Any) -> Any:
        axes = torch_axes(layer, name, len(x.shape))
        return x if axes is None else ops.permute_dims(x, axes)

    return convert


def torch_axes(layer: Module | None, name: str, ndim: int) -> tuple[int, ...] | None:
    """Axes of a tensor of torch's layer in the order of ``layer``; ``None`` if the order is the same.

    >>> torch_axes(Linear(2, 3), "weight", 2)
    (1, 0)
    """
    if name != "weight" or not isinstance(layer, (Linear, Convolution)):
        return None
    # Kernels have the axes (spatial..., in, out), in torch (out, in, spatial...).
    return (*range(2, ndim), 1, 0)


def _recurrent(layer: Recurrent, prefix: str, name: str) -> tuple[str, Callable[[Any], Any]]:
    """Path of torch's tensor ``name`` in a recurrent layer, and the function that converts it."""
    found = re.fullmatch(r"((?:weight|bias)_[ih]h)_l(\d+)(_reverse)?", name)
    if found is None:
        return f"{prefix}.{name}", _same
    own, number, is_reverse = found.groups()
    cell = int(number) * (2 if layer.bidirectional else 1) + bool(is_reverse)
    path = f"cells.{cell}.{own}"
    return f"{prefix}.{path}" if prefix else path, _transposed if own.startswith("weight") else _same


def _same(x: Any) -> Any:
    return x


def _transposed(x: Any) -> Any:
    return ops.transpose(x)


def _unflattened(x: Any, channels: int) -> Any:
    """Weight (in, out) for inputs flattened with the channels last, from (out, in) with the channels first."""
    outputs, inputs = x.shape
    return ops.reshape(
        ops.permute_dims(ops.reshape(x, (outputs, channels, inputs // channels)), (2, 1, 0)), (inputs, outputs)
    )
