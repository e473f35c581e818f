"""Mixed precision: dtypes of parameters, computation and outputs, and the scale of the loss for float16."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ember_ml import ops, tree
from ember_ml.dtypes import KINDS, as_dtype, written
from ember_ml.extend import backend_of, current_backend, is_tensor
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.slots import CONSTANT, FROZEN, TRAINABLE
from ember_ml.spellings import value_hint
from ember_ml.types import DTypeLike

POLICIES = {
    "fp32": ("float32", "float32", "float32"),
    "bf16-mixed": ("float32", "bfloat16", "float32"),
    "fp16-mixed": ("float32", "float16", "float32"),
    "bf16": ("bfloat16", "bfloat16", "bfloat16"),
}


class Precision:
    """Dtypes that a model is stored in, computes in and returns.

    ``apply`` casts the parameters once per call, and not in every operation. Gradients with respect to the parameters
    have the dtype of the parameters. Normalizations, softmax, losses and sums compute in float32 for half-precision
    tensors on every engine, with or without a ``Precision``.

    Args:
        name: ``"fp32"``; ``"bf16-mixed"`` or ``"fp16-mixed"`` for float32 parameters and outputs, with computation in
            half precision; or ``"bf16"`` for bfloat16 throughout.
        parameter: dtype of the parameters; by default as ``name`` says.
        compute: dtype that floating inputs and parameters are cast to.
        output: dtype that floating outputs are cast to.

    >>> from ember_ml import nn, ops
    >>> precision = Precision("bf16-mixed")
    >>> precision
    Precision(parameter='float32', compute='bfloat16', output='float32')
    >>> model = nn.Linear(2, 1, weight_init=1.0)
    >>> precision.apply(model, ops.asarray([[1.0, 0.001]])).tolist()
    [[1.0]]
    >>> ops.dtype(model.weight).name
    'float32'
    """

    def __init__(
        self,
        name: str = "fp32",
        *,
        parameter: DTypeLike | None = None,
        compute: DTypeLike | None = None,
        output: DTypeLike | None = None,
    ) -> None:
        if name not in POLICIES:
            hint = value_hint(name, POLICIES) if isinstance(name, str) else ""
            raise ValueError(f"Precision: name must be one of {', '.join(POLICIES)}, got {name!r}{hint}")
        given = (parameter, compute, output)
        options = ("parameter", "compute", "output")
        self.parameter, self.compute, self.output = (
            default if dtype is None else _floating_name(option, dtype)
            for option, dtype, default in zip(options, given, POLICIES[name], strict=True)
        )

    def apply(self, model: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``model(*args, **kwargs)``, computed in ``compute``; floating outputs have the dtype ``output``.

        Parameters, and buffers that are not persistent, are cast for the call, each once, also if it is tied. Other
        buffers, such as running statistics, keep their dtype.

        Args:
            model: a ``Module``; or a function, whose inputs and outputs are cast.

        >>> from ember_ml import nn, ops, transform
        >>> model, precision = nn.Linear(2, 1), Precision("bf16-mixed")
        >>> gradients = transform.grad(lambda model, x: ops.sum(precision.apply(model, x)))(model, ops.ones((1, 2)))
        >>> {path: ops.dtype(gradient).name for path, gradient in gradients.items()}
        {'weight': 'float32', 'bias': 'float32'}
        """
        held = _cast_tensors(model)
        cast = self._cast(held, self.compute)
        if cast:
            model.assign(cast)  # type: ignore[attr-defined]
        try:
            result = model(*self.cast_inputs(args), **self.cast_inputs(kwargs))
        finally:
            if cast:
                self._restore(model, held, cast)
        return _cast_floating(result, self.output)

    def cast_inputs(self, tree: Any) -> Any:
        """``tree`` with its floating tensors in the dtype ``compute``.

        >>> from ember_ml import ops
        >>> [ops.dtype(x).name for x in Precision("bf16-mixed").cast_inputs([ops.ones(2), ops.arange(2)])]
        ['bfloat16', 'int64']
        """
        return _cast_floating(tree, self.compute)

    def cast_parameters(self, model: Any) -> Any:
        """Assign the parameters of ``model`` in the dtype ``parameter``, and return the model.

        >>> from ember_ml import nn, ops
        >>> ops.dtype(Precision("bf16").cast_parameters(nn.Linear(2, 1)).weight).name
        'bfloat16'
        """
        cast = self._cast(_cast_tensors(model), self.parameter)
        if cast:
            model.assign(cast)
        return model

    def _cast(self, tensors: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Floating tensors in the dtype ``name``, those that have another."""
        paths = [path for path, x in tensors.items() if ops.is_float(x) and ops.dtype(x).name != name]
        if not paths:
            return {}
        backend = backend_of(tensors[paths[0]]) or current_backend()
        cast = backend.cast_all([tensors[path] for path in paths], backend.dtype(name))
        return dict(zip(paths, cast, strict=True))

    def _restore(self, model: Any, held: dict[str, Any], cast: dict[str, Any]) -> None:
        """Assign what the model held before; a tensor that the call has assigned is kept, in its former dtype."""
        now = _cast_tensors(model)
        model.assign(
            {
                path: held[path] if now[path] is x else ops.cast(now[path], ops.dtype(held[path]))
                for path, x in cast.items()
            }
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Precision) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).items()))

    def __repr__(self) -> str:
        return f"Precision({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class LossScale:
    """Factor of a loss whose gradients are computed in float16, and which adapts to their size.

    Small gradients would be rounded to zero in float16, so the loss is multiplied by a large factor and the gradients
    are divided by it. If a gradient overflows, the step is skipped and the factor halved. After ``interval`` steps
    without an overflow, it is doubled. All decisions are made on the device, without waiting for the gradients.

    Args:
        initial: factor at the start.
        interval: number of consecutive steps without an overflow after which the factor is doubled.

    >>> from ember_ml import nn, ops, optim, transform
    >>> model, optimizer = nn.Linear(1, 1, weight_init=1.0), optim.SGD(0.5)
    >>> precision, scale = nn.Precision("fp16-mixed"), LossScale(1024.0)
    >>> def loss(model, x):
    ...     return scale.multiply(ops.sum(precision.apply(model, x)))
    >>> bool(scale.update(model, optimizer, transform.grad(loss)(model, ops.asarray([[1.0]]))))
    True
    >>> model.weight.tolist(), scale.skipped
    ([[0.5]], 0)
    >>> bool(scale.update(model, optimizer, transform.grad(loss)(model, ops.asarray([[1e4]]))))
    False
    >>> model.weight.tolist(), scale.skipped, scale.value
    ([[0.5]], 1, 512.0)
    """

    # The tensors are inputs of compiled programs, which do not depend on their values.
    _not_in_cache_key = frozenset({"_tensors"})

    def __init__(self, initial: float = 2.0**16, interval: int = 2000) -> None:
        if not initial > 0:
            raise ValueError(f"LossScale: initial must be > 0, got {initial}")
        if interval < 1:
            raise ValueError(f"LossScale: interval must be >= 1, got {interval}")
        self.initial, self.interval = initial, interval
        self._tensors: dict[str, Any] = {}

    @property
    def value(self) -> float:
        """Current factor, as a number."""
        return float(self._tensors["value"]) if self._tensors else float(self.initial)

    @property
    def skipped(self) -> int:
        """Number of steps that were skipped."""
        return int(self._tensors["skipped"]) if self._tensors else 0

    def init(self, like: Any) -> LossScale:
        """Create the state on the device of the tensor ``like``, if there is none, and return this object.

        ``multiply`` does this when needed. Call ``init`` before compiling a function that updates the scale.
        """
        if not self._tensors:
            device = ops.get_device(like)
            self._tensors = {
                "value": ops.full((), self.initial, dtype="float32", device=device),
                "run": ops.zeros((), dtype="int32", device=device),
                "skipped": ops.zeros((), dtype="int32", device=device),
            }
        return self

    def tensors(self) -> dict[str, Any]:
        """State tensors by name: the factor, the steps since its last change, and the skipped steps."""
        return dict(self._tensors)

    def assign(self, values: Mapping[str, Any], /) -> None:
        """Replace state tensors, by name as in ``tensors``."""
        self._tensors = {**self._tensors, **values}

    def multiply(self, loss: Any) -> Any:
        """``loss`` times the factor, in float32."""
        self.init(loss)
        return ops.multiply(ops.cast(loss, "float32"), self._tensors["value"])

    def update(self, model: Any, optimizer: Any, grads: Mapping[str, Any], before: Any = None) -> Any:
        """Update a model with gradients of a multiplied loss; if one of them is not finite, skip the step.

        Return whether all are finite, as a 0-d tensor; reading it waits for the computation.

        Args:
            model: the model.
            optimizer: an optimizer of ``ember_ml.optim``.
            grads: gradients of ``multiply(loss)``, by path.
            before: tensors that the model had before the gradient was computed, which a skipped step restores; by
                default its current tensors.
        """
        held = model.tensors() if before is None else before
        optimizer.init(model)
        # On some engines the update writes into the state, unless it was read before.
        state = optimizer.tensors()
        inverse = ops.divide(1.0, self._tensors["value"])
        unscaled = {path: None if x is None else ops.multiply(x, inverse) for path, x in grads.items()}
        sums = [ops.sum(ops.multiply(x, 0.0)) for x in unscaled.values() if x is not None]
        # 0 * x is NaN where x is not finite.
        is_finite = ops.isfinite(ops.sum(ops.stack([ops.cast(x, "float32") for x in sums])))
        optimizer.update(model, unscaled)
        model.assign(_select(is_finite, model.tensors(), held))
        optimizer.assign(_select(is_finite, optimizer.tensors(), state))
        self._count(is_finite)
        return is_finite

    def _count(self, is_finite: Any) -> None:
        value, run, skipped = (self._tensors[name] for name in ("value", "run", "skipped"))
        run = ops.where(is_finite, ops.add(run, 1), 0)
        is_long = ops.greater_equal(run, self.interval)
        # The largest factor leaves room for one more doubling in float32.
        grown = ops.minimum(ops.where(is_long, ops.multiply(value, 2.0), value), 2.0**126)
        smaller = ops.maximum(ops.multiply(value, 0.5), 2.0**-126)
        self._tensors = {
            "value": ops.where(is_finite, grown, smaller),
            "run": ops.where(is_long, 0, run),
            "skipped": ops.where(is_finite, skipped, ops.add(skipped, 1)),
        }

    def __repr__(self) -> str:
        return f"LossScale({self.value:g}, interval={self.interval}, skipped={self.skipped})"


def _select(condition: Any, new: dict[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors that differ between ``new`` and ``old``: the new ones if ``condition`` is true, else the old ones."""
    return {path: ops.where(condition, x, old[path]) for path, x in new.items() if x is not old[path]}


def _cast_tensors(model: Any) -> dict[str, Any]:
    """Tensors that are cast to compute: parameters, and buffers that the constructor has computed."""
    if isinstance(model, Module):
        return dict(model.layout().with_roles(TRAINABLE, FROZEN, CONSTANT))
    return dict(model.parameters()) if hasattr(model, "parameters") else {}


def _cast_floating(given: Any, name: str) -> Any:
    def cast(x: Any) -> Any:
        return ops.cast(x, name) if is_tensor(x) and ops.is_float(x) and ops.dtype(x).name != name else x

    return tree.map(cast, given)


def _floating_name(option: str, dtype: DTypeLike) -> str:
    found = as_dtype(dtype)
    if found.kind not in KINDS["real floating"]:
        raise TypeError(f"Precision: {option} must be a real floating dtype, got {written(dtype)}")
    return found.name
