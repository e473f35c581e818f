"""LoRA: low-rank adapters of linear layers and embeddings, which are trained in place of the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.dtypes import as_dtype, written
from ember_ml.nn.initializers import fan_in_uniform, standard_normal, zeros
from ember_ml.nn.modules.embedding import Embedding
from ember_ml.nn.modules.linear import Linear
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.normalization import BatchNorm
from ember_ml.nn.modules.shape import check_rate
from ember_ml.nn.modules.slots import FROZEN, TRAINABLE, Parameter
from ember_ml.types import DTypeLike, Tensor


class Adapted(Module):
    """Base class of layers with an adapter: ``weight`` plus ``scale * lora_a @ lora_b``.

    A layer becomes one by a change of its class, so that its paths, ties and parents stay.
    """

    plain: ClassVar[type[Module]]
    weight: Any
    rank: int
    alpha: float
    scale: float
    adapter_dropout: float
    is_merged: bool

    def set_adapter(self, a: Any, b: Any, alpha: float, dropout: float, is_stabilized: bool) -> None:
        """Register the factors of the adapter, with the axes (in, rank) and (rank, out)."""
        self.lora_a, self.lora_b = Parameter(a), Parameter(b)
        self.rank, self.alpha = int(a.shape[1]), alpha
        self.scale = alpha / (math.sqrt(self.rank) if is_stabilized else self.rank)
        self.adapter_dropout, self.is_merged = dropout, False

    def remove_adapter(self) -> None:
        for name in ("lora_a", "lora_b", "rank", "alpha", "scale", "adapter_dropout", "is_merged"):
            delattr(self, name)
        self.__class__ = self.plain  # type: ignore[assignment]

    def merge(self, sign: int) -> None:
        """Add ``sign`` times the product of the factors to the weight."""
        dtype = as_dtype(self.weight.dtype)
        # Half precision rounds the sum once, at the end.
        wide = "float32" if dtype.bits < 32 else dtype
        change = ops.matmul(ops.cast(self.lora_a, wide), ops.cast(self.lora_b, wide))
        self.weight = ops.cast(ops.add(self.weight, ops.multiply(change, sign * self.scale)), dtype)
        self.is_merged = sign > 0

    def _plus(self, y: Any, change: Any) -> Any:
        # The adapter may be more precise than the layer, whose output keeps its dtype.
        return ops.add(y, change if change.dtype == y.dtype else ops.cast(change, y.dtype))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, rank={self.rank}, alpha={self.alpha:g}"


class AdaptedLinear(Adapted, Linear):
    """Linear layer with an adapter."""

    plain = Linear

    def forward(self, x: Any) -> Tensor:
        y = ops.linear(x, self.weight, self.bias)
        if self.is_merged:
            return y
        dropped = ops.dropout(x, self.adapter_dropout, training=self.training)
        inner = ops.multiply(ops.matmul(dropped, self.lora_a), self.scale)
        return self._plus(y, ops.matmul(inner, self.lora_b))  # type: ignore[no-any-return]


class AdaptedEmbedding(Adapted, Embedding):
    """Embedding with an adapter; dropout does not apply to it, as in PEFT."""

    plain = Embedding

    def forward(self, indices: Any) -> Tensor:
        y = ops.embedding_lookup(self.weight, indices)
        if self.is_merged:
            return y
        inner = ops.multiply(ops.embedding_lookup(self.lora_a, indices), self.scale)
        return self._plus(y, ops.matmul(inner, self.lora_b))  # type: ignore[no-any-return]

    def attend(self, x: Any) -> Tensor:
        y = super().attend(x)
        if self.is_merged:
            return y
        inner = ops.multiply(ops.matmul(x, ops.matrix_transpose(self.lora_b)), self.scale)
        return self._plus(y, ops.matmul(inner, ops.matrix_transpose(self.lora_a)))  # type: ignore[no-any-return]


# Layers that can be adapted, and what they become.
ADAPTED: dict[type[Module], type[Adapted]] = {Linear: AdaptedLinear, Embedding: AdaptedEmbedding}


class LoRA(Module):
    """A model with low-rank adapters, which alone are trained: ``weight + alpha / rank * a @ b`` (Hu et al., 2021).

    The layers of ``model`` are adapted in place: calling it, or this module, computes with the adapters. All of its
    parameters are frozen, and a frozen ``BatchNorm`` keeps its statistics, so that only the adapters change. A new
    adapter changes no result: one of its factors is zero. Methods of the model, such as ``generate``, are methods of
    this module too.

    Args:
        model: the model, whose parameters keep their paths.
        targets: patterns of the paths of layers, in which ``*`` matches anything: ``Linear`` and ``Embedding`` layers
            that match, or that are below a module that does, are adapted.
        rank: number of columns of the first factor.
        alpha: numerator of the scale of the adapters, ``alpha / rank``.
        dropout: rate of dropout of the inputs of the adapters of linear layers, in training.
        trained: patterns of modules that are trained as a whole besides the adapters, such as a new classifier. They
            are saved with the adapters.
        rank_stabilized: let the scale be ``alpha / sqrt(rank)``.
        dtype: dtype of the adapters, by default that of the weights.

    >>> from ember_ml.nn.modules import ReLU, Sequential
    >>> model = Sequential(Linear(4, 8), ReLU(), Linear(8, 2))
    >>> lora = LoRA(model, "0", rank=2)
    >>> {path: tuple(tensor.shape) for path, tensor in lora.parameters().items()}
    {'model.0.lora_a': (4, 2), 'model.0.lora_b': (2, 8)}
    """

    def __init__(
        self,
        model: Module,
        targets: str | Sequence[str],
        rank: int = 8,
        alpha: float = 16.0,
        dropout: float = 0.0,
        *,
        trained: str | Sequence[str] = (),
        rank_stabilized: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        if not isinstance(rank, int) or isinstance(rank, bool):
            raise TypeError(f"LoRA: rank must be an integer, got {written(rank)}")
        if rank < 1:
            raise ValueError(f"LoRA: rank must be >= 1, got {rank}")
        if not isinstance(alpha, (int, float)):
            raise TypeError(f"LoRA: alpha must be a number, got {written(alpha)}")
        check_rate(self, dropout, "dropout")
        layers = _adaptable(model)
        chosen = _matched("targets", targets, layers)
        if not chosen:
            raise ValueError("LoRA: targets must have at least one pattern, got none")
        with use_backend(model.backend):
            factors = {path: (*_new_factors(layers[path], rank, dtype), alpha) for path in chosen}
        self._install(model, factors, dropout, trained, rank_stabilized)
        self.rank, self.alpha = rank, alpha

    @classmethod
    def from_factors(
        cls,
        model: Module,
        factors: Mapping[str, tuple[Any, Any, float]],
        *,
        dropout: float = 0.0,
        trained: str | Sequence[str] = (),
        rank_stabilized: bool = False,
    ) -> Self:
        """Adapters with given factors.

        Args:
            model: as in the constructor.
            factors: by the path of a layer, both factors, with the axes (in, rank) and (rank, out), and alpha.
            dropout, trained, rank_stabilized: as in the constructor.

        >>> from ember_ml.nn.modules import Sequential
        >>> model = Sequential(Linear(2, 1, bias=False, weight_init="zeros"))
        >>> lora = LoRA.from_factors(model, {"0": (ops.ones((2, 1)), ops.ones((1, 1)), 3.0)})
        >>> lora([[1.0, 2.0]]).tolist()
        [[9.0]]
        """
        self = cls.__new__(cls)
        check_rate(self, dropout, "dropout")
        layers = _adaptable(model)
        unknown = [path for path in factors if path not in layers]
        if unknown or not factors:
            raise ValueError(
                f"LoRA: factors must be of layers of the model, some of {', '.join(layers) or 'none'}, got "
                f"{', '.join(unknown) or 'none'}"
            )
        for path, (a, b, _) in factors.items():
            rows, columns = layers[path].weight.shape
            rank = a.shape[-1] if len(a.shape) else 0
            if tuple(a.shape) != (rows, rank) or tuple(b.shape) != (rank, columns):
                raise ValueError(
                    f"LoRA: factors must have the shapes ({rows}, rank) and (rank, {columns}) for {path!r}, got "
                    f"{list(a.shape)} and {list(b.shape)}"
                )
        self._install(model, factors, dropout, trained, rank_stabilized)
        first, _, self.alpha = next(iter(factors.values()))
        self.rank = int(first.shape[1])
        return self

    def _install(
        self,
        model: Module,
        factors: Mapping[str, tuple[Any, Any, float]],
        dropout: float,
        trained: str | Sequence[str],
        rank_stabilized: bool,
    ) -> None:
        """Freeze the model, and adapt its layers, after all checks."""
        modules = {path: module for path, module in model.named_modules() if path and module._roles}
        whole = _matched("trained", trained, modules)
        both = [path for path in whole if path in factors]
        if both:
            raise ValueError(f"LoRA: a layer must be adapted or trained as a whole, got both for {', '.join(both)}")
        ties = model.layout().ties
        weights = {ties.get(f"{path}.weight", f"{path}.weight") for path in factors}
        shared = [path for path, origin in ties.items() if origin in weights]
        if shared:
            raise ValueError(
                "LoRA: the weight of an adapted layer must not be tied, got another name for it: " + ", ".join(shared)
            )
        self.dropout, self.trained, self.rank_stabilized = dropout, whole, rank_stabilized
        # Parameters to make trainable again when the adapters are removed.
        self._unfrozen = list(model.parameters())
        self.model = model
        model.freeze()
        if whole:
            # A module may have buffers alone.
            model.unfreeze(*[path for path in whole if {FROZEN, TRAINABLE} & set(modules[path]._roles.values())])
        layers = model.layout().modules
        for path, (a, b, alpha) in factors.items():
            layer = layers[path]
            layer.__class__ = ADAPTED[type(layer)]
            layer.set_adapter(a, b, alpha, dropout, rank_stabilized)
        self._paths = list(factors)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Result of the model, with the adapters."""
        return self.model(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Method of the model, such as ``generate``."""
        model = self.__dict__.get("model")
        if model is not None and not name.startswith("_") and callable(getattr(type(model), name, None)):
            return getattr(model, name)
        return super().__getattr__(name)  # type: ignore[misc]

    @property
    def layers(self) -> dict[str, Adapted]:
        """Adapted layers, by their paths in the model."""
        modules = self.model.layout().modules
        return {path: modules[path] for path in self._paths}

    @property
    def is_merged(self) -> bool:
        """Whether the adapters are merged into the weights."""
        return any(layer.is_merged for layer in self.layers.values())

    def merge(self) -> Self:
        """Add the adapters to the weights, and return this module: the model is then as fast as without adapters.

        The adapters stay, frozen, until ``unmerge`` subtracts them, which restores the weights up to rounding.
        ``merge().remove()`` is the model with merged weights and without adapters.
        """
        for layer in self.layers.values():
            if not layer.is_merged:
                layer.merge(1)
                layer.freeze("lora_a", "lora_b")
        return self

    def unmerge(self) -> Self:
        """Subtract merged adapters from the weights, and return this module: the adapters can be trained again."""
        for layer in self.layers.values():
            if layer.is_merged:
                layer.merge(-1)
                layer.unfreeze("lora_a", "lora_b")
        return self

    def remove(self) -> Module:
        """The model without adapters, whose parameters are trainable as they were; what was merged stays merged."""
        for layer in self.layers.values():
            layer.remove_adapter()
        self._paths = []
        self.model.freeze()
        if self._unfrozen:
            self.model.unfreeze(*self._unfrozen)
        return self.model

    def train(self, mode: bool = True) -> Self:
        """Set training mode, as ``Module.train``; a frozen ``BatchNorm`` stays in evaluation mode."""
        if mode and self.is_merged:
            raise ValueError("LoRA: adapters must not be merged in training; write unmerge() first")
        super().train(mode)
        for path, module in self.model.named_modules() if mode else ():
            if isinstance(module, BatchNorm) and path not in self.trained:
                module.eval()
        return self

    def adapter_state(self) -> dict[str, Tensor]:
        """The part of ``state_dict()`` that is trained: adapters, and modules that are trained as a whole.

        ``load_state_dict(state, strict=False)`` loads it.
        """
        prefixes = [f"model.{path}." for path in self.trained]
        return {
            path: tensor
            for path, tensor in self.state_dict().items()
            if path.rpartition(".")[2] in ("lora_a", "lora_b") or any(path.startswith(prefix) for prefix in prefixes)
        }

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        """Tensors of a checkpoint of training: all but the frozen parameters."""
        roles = self.layout().roles
        return {path: tensor for path, tensor in self.tensors().items() if roles[path] != FROZEN}


def _new_factors(layer: Any, rank: int, dtype: DTypeLike | None) -> tuple[Any, Any]:
    """Factors of a new adapter, whose product is zero."""
    rows, columns = layer.weight.shape
    kind, device = layer.weight.dtype if dtype is None else dtype, ops.get_device(layer.weight)
    is_linear = isinstance(layer, Linear)
    a = (fan_in_uniform if is_linear else zeros)((rows, rank), kind)
    b = (zeros if is_linear else standard_normal)((rank, columns), kind)
    return ops.to_device(a, device), ops.to_device(b, device)


def _adaptable(model: Module) -> dict[str, Any]:
    """Layers that can be adapted, by path."""
    if not isinstance(model, Module):
        raise TypeError(f"LoRA: model must be a Module, got {written(model)}")
    found = {path: module for path, module in model.named_modules() if type(module) in ADAPTED}
    adapted = [path for path, module in model.named_modules() if isinstance(module, Adapted)]
    if adapted:
        raise ValueError(
            f"LoRA: model must have no adapters yet, got some at {', '.join(adapted)}; remove() of their LoRA takes "
            "them away"
        )
    if "" in found:
        raise ValueError(f"LoRA: model must contain the layers to adapt, got {type(model).__name__} itself")
    return found


def _matched(option: str, patterns: str | Sequence[str], modules: Mapping[str, Any]) -> list[str]:
    """Paths of modules that match patterns, or are below one that does."""
    given = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    chosen: dict[str, None] = {}
    for pattern in given:
        found = [path for path in modules if fnmatchcase(path, pattern) or fnmatchcase(path, pattern + ".*")]
        if not found:
            raise ValueError(
                f"LoRA: a pattern of {option} must match a layer, one of {', '.join(modules) or 'none'}, got "
                f"{pattern!r}"
            )
        chosen.update(dict.fromkeys(found))
    return [path for path in modules if path in chosen]
