"""State dictionaries of ``torch.nn`` models, converted to the paths and axes of this library's layers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.extend import activate, load_backend, unwrap
from ember_ml.nn.modules.attention import MultiHeadAttention, TransformerLayer
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
            tensor = ops.asarray(unwrap(value))
            for target in targets(layers, path, flattened):
                found[target.path] = target.convert(tensor)
    return found


class Target(NamedTuple):
    """Path of a tensor, and the function that makes it from that of torch."""

    path: str
    convert: Callable[[Any], Any]


def targets(layers: Mapping[str, Module], path: str, flattened: Mapping[str, int]) -> list[Target]:
    """Tensors that the one at ``path`` of a ``torch.nn`` model becomes in the model with these modules.

    >>> layers = dict(MultiHeadAttention(4, 2).named_modules())
    >>> [target.path for target in targets(layers, "in_proj_bias", {})]
    ['query.bias', 'key.bias', 'value.bias']
    """
    path = _renamed(layers, path)
    prefix, dot, name = path.rpartition(".")
    layer = layers.get(prefix)
    if isinstance(layer, Recurrent):
        return [_recurrent(layer, prefix, name)]
    if isinstance(layer, MultiHeadAttention):
        return [Target(f"{prefix}{dot}{own}", convert) for own, convert in _attention(name)]
    return [Target(path, _conversion(layer, name, flattened.get(prefix, 1)))]


# Names in torch's layers of what has another name in ours.
_RENAMED: dict[type[Module], dict[str, str]] = {
    MultiHeadAttention: {"out_proj": "out"},
    TransformerLayer: {
        "self_attn": "attention",
        "multihead_attn": "cross_attention",
        "linear1": "feed_forward.linear1",
        "linear2": "feed_forward.linear2",
    },
}


def _renamed(layers: Mapping[str, Module], path: str) -> str:
    """Path with the names of torch's modules replaced by ours."""
    own: list[str] = []
    for name in path.split("."):
        layer = layers.get(".".join(own))
        tables = [table for kind, table in _RENAMED.items() if isinstance(layer, kind)]
        own.append(tables[0].get(name, name) if tables else name)
    return ".".join(own)


def _attention(name: str) -> list[tuple[str, Callable[[Any], Any]]]:
    """Names of the tensors of attention that torch's tensor ``name`` holds, and the functions that select them."""
    parts = ("query", "key", "value")
    if name == "in_proj_weight":
        return [(f"{part}.weight", partial(_third, number=i, then=_transposed)) for i, part in enumerate(parts)]
    if name == "in_proj_bias":
        return [(f"{part}.bias", partial(_third, number=i, then=_same)) for i, part in enumerate(parts)]
    found = [part for part in parts if name == f"{part[0]}_proj_weight"]
    return [(f"{found[0]}.weight", _transposed)] if found else [(name, _same)]


def _third(x: Any, number: int, then: Callable[[Any], Any]) -> Any:
    return then(ops.split(x, 3)[number])


def _conversion(layer: Module | None, name: str, channels: int) -> Callable[[Any], Any]:
    """Function from a tensor of torch's layer to that of ``layer``."""
    if isinstance(layer, Linear) and name == "weight" and channels > 1:
        return lambda x: _unflattened(x, channels)

    return _same if torch_axes(layer, name, 2) is None else _outputs_last


def torch_axes(layer: Module | None, name: str, ndim: int) -> tuple[int, ...] | None:
    """Axes of a tensor of torch's layer in the order of ``layer``; ``None`` if the order is the same.

    >>> torch_axes(Linear(2, 3), "weight", 2)
    (1, 0)
    """
    if name != "weight" or not isinstance(layer, (Linear, Convolution)):
        return None
    return _weight_axes(ndim)


def _weight_axes(ndim: int) -> tuple[int, ...]:
    """Axes of a weight of torch, which are (out, in, spatial...), in the order (spatial..., in, out)."""
    return (*range(2, ndim), 1, 0)


def _recurrent(layer: Recurrent, prefix: str, name: str) -> Target:
    """Tensor that torch's tensor ``name`` is in a recurrent layer."""
    dot = "." if prefix else ""
    found = re.fullmatch(r"((?:weight|bias)_[ih]h)_l(\d+)(_reverse)?", name)
    if found is None:
        return Target(f"{prefix}{dot}{name}", _same)
    own, number, is_reverse = found.groups()
    cell = int(number) * (2 if layer.bidirectional else 1) + bool(is_reverse)
    return Target(f"{prefix}{dot}cells.{cell}.{own}", _transposed if own.startswith("weight") else _same)


def _same(x: Any) -> Any:
    return x


def _transposed(x: Any) -> Any:
    return ops.transpose(x)


def _outputs_last(x: Any) -> Any:
    return ops.permute_dims(x, _weight_axes(len(x.shape)))


def _unflattened(x: Any, channels: int) -> Any:
    """Weight (in, out) for inputs flattened with the channels last, from (out, in) with the channels first."""
    outputs, inputs = x.shape
    return ops.reshape(
        ops.permute_dims(ops.reshape(x, (outputs, channels, inputs // channels)), (2, 1, 0)), (inputs, outputs)
    )
