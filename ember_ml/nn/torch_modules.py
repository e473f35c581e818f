"""Models as modules of torch and back: ``to_torch`` and ``from_torch``."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.dtypes import written
from ember_ml.errors import UnsupportedError
from ember_ml.extend import activate, load_backend
from ember_ml.nn import modules as layers
from ember_ml.nn.modules import Module, Tied
from ember_ml.nn.modules.torch_state import targets


def to_torch(model: Module) -> Any:
    """A ``torch.nn.Module`` with a copy of the parameters and buffers of ``model``, under the same paths.

    It trains with the optimizers of torch, Lightning and ``DistributedDataParallel``, and ``torch.export`` and
    ``torch.compile`` trace it. Frozen parameters have ``requires_grad=False``, tied ones stay one parameter, buffers
    are updated in training, and ``train()`` and ``eval()`` apply to the layers. ``model`` itself does not change;
    ``from_torch`` returns a model with the trained values.

    Random layers follow torch's generator, so ``torch.manual_seed`` seeds them, and ``torch.utils.checkpoint`` repeats
    their numbers. Only ``forward`` of the model can be called. Its layers cannot be replaced in the result, and their
    hooks are not called.

    Args:
        model: a model on any engine. On torch, the copy is on the device of the model, else on torch's default device.
    """
    if not isinstance(model, Module):
        raise TypeError(f"to_torch: model must be an ember_ml.nn.Module, got {written(model)}")
    backend = load_backend("torch", "to_torch")
    layout = model.layout()
    tensors = {path: getattr(module, name) for path, module, name in layout.names.values()}
    with activate(backend):
        # Copied first under torch: memory that engines share must not change when torch writes in place.
        copies = {path: ops.asarray(tensors[path], copy=True) for path in layout.entries}
        # A deep copy of the structure alone.
        source = copy.deepcopy(model, {id(tensor): ops.zeros(0) for tensor in tensors.values()})
    new = source.layout()
    entries = {
        path: (module, name, copies[new.ties.get(path, path)], new.roles[new.ties.get(path, path)])
        for path, module, name in new.names.values()
    }
    return _adapter_class()(source, new.modules, entries)


def _adapter_class() -> Any:
    return importlib.import_module(f"{load_backend('torch').module.__name__}.adapter").Adapter


def from_torch(module: Any) -> Module:
    """A model of this library, on the active engine, that computes what a module of torch does, with its weights.

    The module is the result of ``to_torch``, or made of layers that this library has too: ``Linear``, convolutions,
    normalizations, ``Embedding``, activations, ``Dropout``, pools, ``Flatten``, recurrent layers,
    ``MultiheadAttention`` and transformer layers, in ``Sequential``, ``ModuleList`` and ``ModuleDict``. Images keep
    their channels after the batch. Attention returns its output alone, without weights, and takes masks that are true
    where a query may see a key. Decoders of transformers are causal unless a call has ``is_causal=False``, while those
    of torch are not causal unless a call has a mask. Tied parameters stay tied, parameters without ``requires_grad``
    are frozen, and each layer keeps its mode. The weights are copies.

    Args:
        module: a ``torch.nn.Module``. If a layer, or an option of one, has no counterpart, ``UnsupportedError`` lists
            all of them with their paths. For a class with a ``forward`` method of its own, write the same class with
            this library's layers, and load the weights with ``load_torch_state_dict``.

    >>> from ember_ml import nn
    >>> nn.from_torch(nn.to_torch(nn.Linear(2, 3)))
    Linear(in_features=2, out_features=3)
    """
    if not any(kind.__module__ == "torch.nn.modules.module" for kind in type(module).__mro__):
        raise TypeError(f"from_torch: module must be a torch.nn.Module, got {written(module)}")
    if isinstance(module, _adapter_class()):
        return _from_adapter(module)
    problems: list[str] = []
    with ops.random.stream(0):  # the initial values are replaced, and must not advance the stream
        model = _convert(module, "", problems, {})
    if not problems:
        problems = _tie(module, model)
    if problems:
        raise UnsupportedError(
            "\n".join(["from_torch: module must be made of layers that have a counterpart, got", *problems])
        )
    own = dict(model.named_modules())
    # A module under two paths is loaded under the first, as it is listed.
    paths = dict(module.named_modules())
    state = {path: x.detach() for path, x in module.state_dict().items() if path.rpartition(".")[0] in paths}
    model.load_torch_state_dict(state)
    for path, parameter in module.named_parameters():
        if not parameter.requires_grad:
            model.freeze(*(target.path for target in targets(own, path, {})))
    return model


def _from_adapter(adapter: Any) -> Module:
    """The model of an adapter, with copies of its tensors on the active engine."""
    model: Module = copy.deepcopy(adapter._last_model())
    model.assign({place.path: ops.asarray(place.tensor().detach(), copy=True) for place in adapter._places})
    for place in adapter._places:
        if place.is_parameter:
            (model.unfreeze if place.tensor().requires_grad else model.freeze)(place.path)
    own = dict(model.named_modules())
    for path, part in zip(model.layout().modules, adapter._parts, strict=True):
        own[path].training = part.training
    return model


def _convert(module: Any, path: str, problems: list[str], made: dict[int, Module]) -> Module:
    """Counterpart of ``module``, without its weights. What has none is added to ``problems``."""
    if id(module) in made:
        return made[id(module)]
    name = _class_name(module)
    is_whole = name in _LAYERS or isinstance(module, _adapter_class()) or "parametrizations" in module._modules
    children = {
        key: _convert(child, f"{path}.{key}" if path else key, problems, made)
        for key, child in module._modules.items()  # named_children has each module once
        if not is_whole and child is not None
    }
    reasons = [] if name else _reasons(module)
    # A layer is converted with all of its parts.
    own = [] if name is None else list(module.modules()) if name in _LAYERS else [module]
    if any(len(getattr(part, hooks)) for part in own for hooks in ("_forward_hooks", "_forward_pre_hooks")):
        reasons.append("it has forward hooks, which are not converted")
    model: Module = layers.Identity()
    if name in _CONTAINERS:
        model = _CONTAINERS[name](children)
    elif name:
        try:
            model = _LAYERS[name](module)
        except UnsupportedError as error:
            reasons.append(str(error))
    problems += [f"  {path or 'the module itself'}: {type(module).__name__}: {reason}" for reason in reasons]
    for part in model.modules() if name in _LAYERS else [model]:
        object.__setattr__(part, "training", module.training)
    made[id(module)] = model
    return model


def _reasons(module: Any) -> list[str]:
    """Why a module of a class without a counterpart cannot be converted, and what to do."""
    kind = type(module)
    children = [(key, child) for key, child in module._modules.items() if child is not None]
    base = _torch_base(kind)
    if isinstance(module, _adapter_class()):
        return ["the result of to_torch inside another module; call from_torch on it"]
    if "parametrizations" in module._modules:
        return ["it has parametrizations; torch.nn.utils.parametrize.remove_parametrizations makes them permanent"]
    if base is not None and base is not kind and base.__name__ in _LAYERS:
        return [
            f"a subclass of {base.__name__}, which may compute something else; use {base.__name__} itself, or write it "
            f"with {_WITH_OUR_LAYERS}"
        ]
    # Wrappers of torch, such as DistributedDataParallel and the result of torch.compile, have one part.
    if kind.__module__.startswith("torch.") and base is None and len(children) == 1:
        key, child = children[0]
        # The part says so itself if it is the result of to_torch.
        return [] if isinstance(child, _adapter_class()) else [f"a wrapper; call from_torch on its part {key}"]
    if any(isinstance(below, _adapter_class()) for below in module.modules()):
        return []
    return [
        f"a class with a forward method of its own; write it with {_WITH_OUR_LAYERS}" if children else "no such layer"
    ]


_WITH_OUR_LAYERS = "the layers of ember_ml.nn, and load its weights with load_torch_state_dict"


def _torch_base(kind: Any) -> Any:
    """The first class of torch's own modules that a class is or inherits from; ``None`` if there is none."""
    found = (base for base in kind.__mro__ if base.__module__.startswith("torch.nn.modules."))
    return next((base for base in found if base.__name__ != "Module"), None)


def _class_name(module: Any) -> str | None:
    """Name of the class of torch that a module is an instance of; ``None`` if its ``forward`` is not that of torch."""
    kind: Any = type(module)
    base = _torch_base(kind)
    if base is None or base.__name__ not in (*_LAYERS, *_CONTAINERS):
        return None
    # A subclass of a container that only fills it computes what the container does.
    is_filled = base.__name__ in _CONTAINERS and kind.forward is base.forward
    return base.__name__ if kind is base or is_filled else None


def _tie(module: Any, model: Module) -> list[str]:
    """Tie what is one parameter in ``module``, and return the pairs for which that is not possible."""
    problems = []
    own = dict(model.named_modules())
    first: dict[int, str] = {}
    paths = dict(module.named_modules())
    for path, parameter in module.named_parameters(remove_duplicate=False):
        if path.rpartition(".")[0] not in paths:
            continue
        held = first.setdefault(id(parameter), path)
        if held == path:
            continue
        here, there = (targets(own, one, {}) for one in (path, held))
        if [one.convert for one in here] != [one.convert for one in there] or len(here) != 1:
            problems.append(
                f"  {held} and {path}: one parameter of layers whose weights have other axes in ember_ml.nn"
            )
            continue
        (prefix, _, name), (other, _, source) = (one[0].path.rpartition(".") for one in (here, there))
        setattr(own[prefix], name, Tied(own[other], source))
    return problems


def _require(module: Any, **options: Any) -> None:
    """Raise ``UnsupportedError`` if an option of a layer has another value than this library supports."""
    wrong = [
        f"{name} must be {value!r}, got {found!r}"
        for name, value in options.items()
        if (found := getattr(module, name, value)) != value
    ]
    if wrong:
        raise UnsupportedError("; ".join(wrong))


def _dtype(module: Any) -> Any:
    """Dtype of the parameters of a layer; ``None`` if there are none."""
    first = next(iter(module.parameters()), None)
    return None if first is None else ops.dtype(first)


def _linear(m: Any) -> Module:
    return layers.Linear(m.in_features, m.out_features, m.bias is not None, dtype=_dtype(m))


def _embedding(m: Any) -> Module:
    # The gradient of a padding row is zero in torch.
    _require(m, padding_idx=None, max_norm=None, scale_grad_by_freq=False)
    return layers.Embedding(m.num_embeddings, m.embedding_dim, dtype=_dtype(m))


def _convolution(m: Any) -> Module:
    _require(m, padding_mode="zeros")
    kind = getattr(layers, type(m).__name__)
    options = {"data_format": "channels_first", "bias": m.bias is not None, "dtype": _dtype(m)}
    if kind.is_transposed:
        options["output_padding"] = m.output_padding
    return kind(  # type: ignore[no-any-return]
        m.in_channels,
        m.out_channels,
        m.kernel_size,
        m.stride,
        m.padding,
        groups=m.groups,
        dilation_rate=m.dilation,
        **options,
    )


def _batch_norm(m: Any) -> Module:
    _require(m, track_running_stats=True)
    if m.momentum is None:
        raise UnsupportedError("momentum must be a number, got None")
    return layers.BatchNorm(
        m.num_features, axis=1, momentum=m.momentum, epsilon=m.eps, affine=m.affine, dtype=_dtype(m)
    )


def _layer_norm(m: Any) -> Module:
    has_bias = m.bias is not None
    return layers.LayerNorm(m.normalized_shape, m.eps, m.elementwise_affine, bias=has_bias, dtype=_dtype(m))


def _rms_norm(m: Any) -> Module:
    # Without one, torch uses the smallest step of the dtype of the input.
    if m.eps is None:
        raise UnsupportedError("eps must be a number, got None")
    return layers.RMSNorm(m.normalized_shape, m.eps, m.elementwise_affine, dtype=_dtype(m))


def _group_norm(m: Any) -> Module:
    return layers.GroupNorm(m.num_groups, m.num_channels, m.eps, m.affine, axis=1, dtype=_dtype(m))


def _max_pool(m: Any) -> Module:
    _require(m, ceil_mode=False, return_indices=False)
    if m.dilation not in (1, (1,) * int(type(m).__name__[-2])):
        raise UnsupportedError(f"dilation must be 1, got {m.dilation!r}")
    kind = getattr(layers, type(m).__name__)
    return kind(m.kernel_size, m.stride, m.padding, data_format="channels_first")  # type: ignore[no-any-return]


def _average_pool(m: Any) -> Module:
    _require(m, ceil_mode=False, divisor_override=None)
    padding = m.padding if isinstance(m.padding, tuple) else (m.padding,)
    if any(padding):
        _require(m, count_include_pad=False)
    kind = getattr(layers, type(m).__name__.replace("Avg", "Average"))
    return kind(m.kernel_size, m.stride, m.padding, data_format="channels_first")  # type: ignore[no-any-return]


def _adaptive_pool(m: Any) -> Module:
    rank = int(type(m).__name__[-2])
    size = m.output_size if isinstance(m.output_size, (tuple, list)) else (m.output_size,) * rank
    _require(m, return_indices=False)
    if None in size:
        raise UnsupportedError(f"output_size must be integers, got {m.output_size!r}")
    kind = layers.AdaptiveMaxPool if "Max" in type(m).__name__ else layers.AdaptiveAveragePool
    return kind(tuple(size), data_format="channels_first")


def _flatten(m: Any) -> Module:
    _require(m, end_dim=-1)
    return layers.Flatten(m.start_dim)


def _recurrent(m: Any) -> Module:
    _require(m, proj_size=0)
    options = {"activation": m.nonlinearity} if type(m).__name__ == "RNN" else {}
    kind = getattr(layers, type(m).__name__)
    return kind(  # type: ignore[no-any-return]
        m.input_size,
        m.hidden_size,
        m.num_layers,
        m.bias,
        m.batch_first,
        m.dropout,
        m.bidirectional,
        dtype=_dtype(m),
        **options,
    )


def _attention(m: Any) -> Module:
    _require(m, batch_first=True, add_zero_attn=False, bias_k=None, bias_v=None)
    has_bias = m.in_proj_bias is not None
    return layers.MultiHeadAttention(
        m.embed_dim, m.num_heads, m.dropout, has_bias, kdim=m.kdim, vdim=m.vdim, dtype=_dtype(m)
    )


def _transformer_layer(m: Any) -> Module:
    options = _transformer_options(m)
    return getattr(layers, type(m).__name__)(*_transformer_sizes(m), **options)  # type: ignore[no-any-return]


def _transformer_sizes(m: Any) -> tuple[int, int, int]:
    return m.self_attn.embed_dim, m.self_attn.num_heads, m.linear1.out_features


def _transformer_options(m: Any) -> dict[str, Any]:
    _require(m.self_attn, batch_first=True)
    activation = getattr(m.activation, "__name__", type(m.activation).__name__.lower())
    if activation not in ("relu", "gelu") or getattr(m.activation, "approximate", "none") != "none":
        raise UnsupportedError(f"activation must be relu or gelu, got {m.activation!r}")
    _check_classes(m, type(m)(1, 1, 1, activation=m.activation, device="meta"))
    options = {
        "dropout": m.dropout.p,
        "activation": activation,
        "norm_first": m.norm_first,
        "bias": m.linear1.bias is not None,
        "epsilon": m.norm1.eps,
        "dtype": _dtype(m),
    }
    like = type(m)(
        *_transformer_sizes(m),
        options["dropout"],
        m.activation,
        options["epsilon"],
        batch_first=True,
        norm_first=m.norm_first,
        bias=options["bias"],
        device="meta",
    )
    _check_options(m, like)
    return options


def _check_classes(m: Any, like: Any) -> None:
    """Raise ``UnsupportedError`` if a part of a layer is of another class than that of a new layer."""
    parts = dict(m.named_modules(remove_duplicate=False))
    for name, part in like.named_modules():
        kind, found = type(part), type(parts.get(name))
        if found is not kind:
            raise UnsupportedError(f"{name} must be of the class {kind.__name__}, got {found.__name__}")


def _check_options(m: Any, like: Any) -> None:
    """Raise ``UnsupportedError`` if a part of a layer has other options than that of a new layer."""
    parts = dict(m.named_modules(remove_duplicate=False))
    for name, part in like.named_modules():
        if _written_layer(parts[name]) != _written_layer(part):
            raise UnsupportedError(
                f"{name} must be {_written_layer(part)}, like the rest of the layer, got {_written_layer(parts[name])}"
            )
        if type(part).__name__ == "MultiheadAttention" and parts[name].dropout != part.dropout:
            raise UnsupportedError(
                f"{name}.dropout must be {part.dropout}, like the rest of the layer, got {parts[name].dropout}"
            )


def _written_layer(m: Any) -> str:
    """Class and options of a layer of torch, for comparisons and errors."""
    options = m.extra_repr()
    # torch 2.8 does not write that a LayerNorm has no bias.
    has_no_bias = getattr(m, "bias", True) is None and "bias=" not in options
    return f"{type(m).__name__}({options}{', bias=False' if has_no_bias else ''})"


def _transformer(m: Any) -> Module:
    kind = type(m).__name__
    if not len(m.layers) or any(_class_name(layer) != f"{kind}Layer" for layer in m.layers):
        raise UnsupportedError("its layers must be those of torch, got others or none")
    forms = [(_transformer_options(layer), _transformer_sizes(layer)) for layer in m.layers]
    if any(form != forms[0] for form in forms):
        raise UnsupportedError("its layers must have the same options, got others")
    options, sizes = forms[0]
    if (m.norm is not None) != options["norm_first"]:
        raise UnsupportedError("a norm after the last layer must be given with norm_first=True alone")
    like = _written_layer(m.layers[0].norm1)
    if m.norm is not None and _written_layer(m.norm) != like:
        raise UnsupportedError(f"its norm must be {like}, like those of its layers, got {_written_layer(m.norm)}")
    return getattr(layers, kind)(len(m.layers), *sizes, **options)  # type: ignore[no-any-return]


def _activation(**attributes: str) -> Callable[[Any], Module]:
    """Function from an activation of torch to ours, whose options have the values of these attributes."""

    def build(m: Any) -> Module:
        kind = getattr(layers, type(m).__name__)
        return kind(**{option: getattr(m, attribute) for option, attribute in attributes.items()})  # type: ignore[no-any-return]

    return build


def _softmax(m: Any) -> Module:
    if m.dim is None:
        raise UnsupportedError("dim must be an integer, got None")
    return getattr(layers, type(m).__name__)(axis=m.dim)  # type: ignore[no-any-return]


def _prelu(m: Any) -> Module:
    # torch has the channels after the batch, this library last.
    _require(m, num_parameters=1)
    return layers.PReLU(dtype=_dtype(m))


def _gelu(m: Any) -> Module:
    return layers.GELU(approximate=m.approximate == "tanh")


_CONTAINERS: dict[str | None, Callable[[dict[str, Module]], Module]] = {
    "Sequential": lambda children: _named(layers.Sequential(), children),
    "ModuleList": lambda children: layers.ModuleList(children.values()),
    "ModuleDict": lambda children: layers.ModuleDict(children),
}


def _named(model: Module, children: dict[str, Module]) -> Module:
    """``model`` with its modules under the names that they have in torch."""
    for name, child in children.items():
        setattr(model, name, child)
    return model


_LAYERS: dict[str | None, Callable[[Any], Module]] = {
    "Linear": _linear,
    "NonDynamicallyQuantizableLinear": _linear,
    "Identity": lambda m: layers.Identity(),
    "Dropout": lambda m: layers.Dropout(m.p),
    "Flatten": _flatten,
    "Embedding": _embedding,
    "LayerNorm": _layer_norm,
    "RMSNorm": _rms_norm,
    "GroupNorm": _group_norm,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "MultiheadAttention": _attention,
    "TransformerEncoder": _transformer,
    "TransformerDecoder": _transformer,
    "TransformerEncoderLayer": _transformer_layer,
    "TransformerDecoderLayer": _transformer_layer,
    "ReLU": _activation(),
    "ReLU6": _activation(),
    "LeakyReLU": _activation(negative_slope="negative_slope"),
    "PReLU": _prelu,
    "ELU": _activation(alpha="alpha"),
    "SELU": _activation(),
    "CELU": _activation(alpha="alpha"),
    "GELU": _gelu,
    "SiLU": _activation(),
    "Mish": _activation(),
    "Sigmoid": _activation(),
    "LogSigmoid": _activation(),
    "Tanh": _activation(),
    "Softplus": _activation(beta="beta", threshold="threshold"),
    "Softsign": _activation(),
    "Hardtanh": _activation(min_val="min_val", max_val="max_val"),
    "Hardsigmoid": _activation(),
    "Hardswish": _activation(),
    "Hardshrink": _activation(threshold="lambd"),
    "Softshrink": _activation(threshold="lambd"),
    "Tanhshrink": _activation(),
    "GLU": _activation(axis="dim"),
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    **{f"{kind}{rank}d": _convolution for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)},
    **{f"BatchNorm{rank}d": _batch_norm for rank in (1, 2, 3)},
    **{f"MaxPool{rank}d": _max_pool for rank in (1, 2, 3)},
    **{f"AvgPool{rank}d": _average_pool for rank in (1, 2, 3)},
    **{f"Adaptive{kind}Pool{rank}d": _adaptive_pool for kind in ("Max", "Avg") for rank in (1, 2, 3)},
}
