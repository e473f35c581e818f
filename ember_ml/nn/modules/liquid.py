"""Liquid networks: recurrent layers in continuous time, with steps of any length.

``LTC`` solves the differential equation of each neuron (liquid time-constant networks; Hasani et al., 2021), ``CfC``
computes a closed-form solution (Hasani et al., 2022). A wiring defines which neurons are connected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ember_ml import ops
from ember_ml.nn import initializers
from ember_ml.nn.modules.checks import check_sizes, find_activation, is_known_true
from ember_ml.nn.modules.containers import ModuleList
from ember_ml.nn.modules.linear import Linear
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.recurrent import LSTMCell, run
from ember_ml.nn.modules.shape import check_rate
from ember_ml.nn.modules.slots import Buffer, Parameter
from ember_ml.nn.wirings import FullyConnected, Wiring
from ember_ml.types import DTypeLike, Tensor


class LTCCell(Module):
    """One step of a liquid time-constant network.

    The potential ``v`` of a neuron follows ``cm * dv/dt = gleak * (vleak - v) + sum(w * s * (erev - v))``. The sum is
    over its synapses, with ``s = sigmoid(sigma * (u - mu))`` for the presynaptic potential or input ``u``. One step of
    the cell is ``ode_unfolds`` semi-implicit steps of the solver. The state starts with the motor neurons; the output
    is an affine map of them. ``gleak``, ``cm`` and ``w`` must be positive, so they are the softplus of the parameters.

    Args:
        input_size: number of inputs.
        wiring: a ``Wiring``, or a number of neurons for a fully connected one.
        ode_unfolds: number of solver steps per step of the cell.
        epsilon: added to the conductance of each neuron for numerical stability.

    >>> from ember_ml.nn.wirings import AutoNCP
    >>> output, state = LTCCell(3, AutoNCP(8, 2))(ops.ones((5, 3)))
    >>> tuple(output.shape), tuple(state.shape)
    ((5, 2), (5, 8))
    """

    def __init__(
        self,
        input_size: int,
        wiring: int | Wiring,
        *,
        ode_unfolds: int = 6,
        epsilon: float = 1e-8,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, input_size=input_size)
        _check_wiring(self, "wiring", wiring)
        circuit = _build_wiring(wiring, input_size)
        self.hidden_size = units = circuit.units
        if ode_unfolds < 1:
            raise ValueError(f"{type(self).__name__}: ode_unfolds must be >= 1, got {ode_unfolds}")
        self.input_size, self.wiring = input_size, wiring
        self.ode_unfolds, self.epsilon = ode_unfolds, epsilon
        self._outputs = circuit.output_dim
        draw = partial(_uniform, dtype=dtype)
        polarity: Any = ops.asarray(circuit.adjacency, dtype=_floating(dtype))
        sensory_polarity: Any = ops.asarray(circuit.sensory_adjacency, dtype=_floating(dtype))
        self.input_weight: Any = Parameter(ops.ones((input_size,), dtype=dtype))
        self.input_bias: Any = Parameter(ops.zeros((input_size,), dtype=dtype))
        self.gleak: Any = Parameter(_inverse_softplus(draw((units,), 0.001, 1.0)))
        self.vleak: Any = Parameter(draw((units,), -0.2, 0.2))
        self.cm: Any = Parameter(_inverse_softplus(draw((units,), 0.4, 0.6)))
        self.weight: Any = Parameter(_inverse_softplus(draw((units, units), 0.001, 1.0)))
        self.sigma: Any = Parameter(draw((units, units), 3.0, 8.0))
        self.mu: Any = Parameter(draw((units, units), 0.3, 0.8))
        self.erev: Any = Parameter(polarity)
        self.sensory_weight: Any = Parameter(_inverse_softplus(draw((input_size, units), 0.001, 1.0)))
        self.sensory_sigma: Any = Parameter(draw((input_size, units), 3.0, 8.0))
        self.sensory_mu: Any = Parameter(draw((input_size, units), 0.3, 0.8))
        self.sensory_erev: Any = Parameter(sensory_polarity)
        self.output_weight: Any = Parameter(ops.ones((self._outputs,), dtype=dtype))
        self.output_bias: Any = Parameter(ops.zeros((self._outputs,), dtype=dtype))
        self.mask: Any = Buffer(ops.abs(polarity))
        self.sensory_mask: Any = Buffer(ops.abs(sensory_polarity))

    def forward(self, x: Any, state: Any = None, elapsed: Any = 1.0) -> tuple[Tensor, Tensor]:
        """Output, and state after ``elapsed`` time; the state before defaults to zero."""
        _check_elapsed(elapsed)
        projected = self.project(x)
        state = self.step(self.kept(), projected, self.start(projected) if state is None else state, elapsed)
        return self._motor(state), state

    def project(self, x: Any) -> Any:
        """Conductance and current from the inputs to each neuron, concatenated."""
        _check_inputs(self, x)
        x = ops.add(ops.multiply(x, self.input_weight), self.input_bias)
        conductance = self._conductance(
            x, ops.multiply(ops.softplus(self.sensory_weight), self.sensory_mask), self.sensory_sigma, self.sensory_mu
        )
        current = ops.multiply(conductance, self.sensory_erev)
        return ops.concat([ops.sum(conductance, axis=-2), ops.sum(current, axis=-2)], axis=-1)

    def _conductance(self, u: Any, weight: Any, sigma: Any, mu: Any) -> Any:
        """Conductance of every synapse, with the axes (..., source, target)."""
        gates = ops.sigmoid(ops.multiply(sigma, ops.subtract(ops.expand_dims(u, axis=-1), mu)))
        return ops.multiply(weight, gates)

    def start(self, projected: Any) -> Any:
        """State before the first step: zero."""
        return ops.zeros_like(projected[..., : projected.shape[-1] // 2])

    def kept(self) -> tuple[Any, ...]:
        """Values that are the same in all steps: leak conductance, leak current, capacitance, and synapse weights."""
        leak = ops.softplus(self.gleak)
        capacity = ops.multiply(ops.softplus(self.cm), self.ode_unfolds)
        return leak, ops.multiply(leak, self.vleak), capacity, ops.multiply(ops.softplus(self.weight), self.mask)

    def step(self, kept: Any, projected: Any, v: Any, elapsed: Any = 1.0) -> Any:
        """Potentials after one step, given the result of ``project`` for its input."""
        leak, drive, capacity, weight = kept
        units = projected.shape[-1] // 2
        below = ops.add(leak, ops.add(projected[..., :units], self.epsilon))
        above = ops.add(drive, projected[..., units:])
        is_timed = not (isinstance(elapsed, (int, float)) and elapsed == 1)
        for _ in range(self.ode_unfolds):
            synapses = self._conductance(v, weight, self.sigma, self.mu)
            current = ops.add(above, ops.sum(ops.multiply(synapses, self.erev), axis=-2))
            conductance = ops.add(below, ops.sum(synapses, axis=-2))
            if is_timed:
                # Multiply instead of dividing the capacitance by the time, which may be zero.
                current, conductance = ops.multiply(current, elapsed), ops.multiply(conductance, elapsed)
            v = ops.divide(ops.add(ops.multiply(capacity, v), current), ops.add(capacity, conductance))
        return v

    def outputs(self, states: list[Any], axis: int) -> Any:
        """Outputs from the states after each step, along a new axis."""
        return self._motor(ops.stack(states, axis=axis))

    def _motor(self, state: Any) -> Any:
        """Affine map of the motor neurons."""
        return ops.add(ops.multiply(state[..., : self._outputs], self.output_weight), self.output_bias)


class LTC(Module):
    """Layer of liquid time-constant neurons over a sequence; see ``LTCCell``.

    A call returns the outputs of all steps and the state after the last. ``x`` has the axes (batch, time, features),
    the outputs (batch, time, motor neurons) and the state (batch, neurons).

    Args:
        input_size: number of features of ``x``.
        units: a ``Wiring``, or a number of neurons for a fully connected one.
        return_sequences: if false, only the output of the last step is returned.
        batch_first: if false, the axes of ``x`` and of the outputs are (time, batch, features).
        mixed_memory: whether an LSTM updates the state before the neurons in each step, for long-term memory. The
            state is then the pair ``(h, c)``, where ``h`` is the state of the neurons.
        ode_unfolds, epsilon: as in ``LTCCell``.

    >>> from ember_ml.nn.wirings import AutoNCP
    >>> outputs, state = LTC(3, AutoNCP(8, 2))(ops.ones((5, 7, 3)))
    >>> tuple(outputs.shape), tuple(state.shape)
    ((5, 7, 2), (5, 8))
    """

    def __init__(
        self,
        input_size: int,
        units: int | Wiring,
        *,
        return_sequences: bool = True,
        batch_first: bool = True,
        mixed_memory: bool = False,
        ode_unfolds: int = 6,
        epsilon: float = 1e-8,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, input_size=input_size)
        _check_wiring(self, "units", units)
        if ode_unfolds < 1:
            raise ValueError(f"{type(self).__name__}: ode_unfolds must be >= 1, got {ode_unfolds}")
        self.input_size, self.units, self.mixed_memory = input_size, units, mixed_memory
        self.return_sequences, self.batch_first = return_sequences, batch_first
        self.cell = LTCCell(input_size, units, ode_unfolds=ode_unfolds, epsilon=epsilon, dtype=dtype)
        self.memory = LSTMCell(input_size, self.cell.hidden_size, dtype=dtype) if mixed_memory else None

    def forward(self, x: Any, state: Any = None, timespans: Any = None) -> tuple[Any, Any]:
        """Outputs and last state; ``timespans`` (batch, time) is the elapsed time of each step, by default 1."""
        axis = 1 if self.batch_first else 0
        _check_state(state, x, axis, self.cell.hidden_size, self.memory)
        cell = self.cell if self.memory is None else _MixedMemoryCell([self.cell], self.memory)
        outputs, state = run(cell, x, state, axis=axis, spans=_spans(timespans, x, axis))
        return outputs if self.return_sequences else ops.take(outputs, -1, axis=axis), state


class CfCCell(Module):
    """One step of a closed-form continuous-time network.

    A backbone computes features from the input and the state, and linear heads compute ``g``, ``h``, ``a`` and ``b``
    from the features. The new state is ``(1 - s) * tanh(g) + s * tanh(h)`` with ``s = sigmoid(a * elapsed + b)``.

    Args:
        input_size: number of inputs.
        hidden_size: number of neurons.
        mode: ``"default"`` is the formula above; ``"no_gate"`` is ``tanh(g) + s * tanh(h)``; ``"pure"`` is the
            closed-form solution ``A - A * exp(-elapsed * (abs(w) + abs(g))) * g``.
        activation: activation of the backbone, a name or a function.
        backbone_units: number of features of each backbone layer.
        backbone_layers: number of backbone layers; with 0, the heads use the input and the state directly.
        backbone_dropout: rate of dropout after the backbone, in training.
        mask: tensor of shape (input_size + hidden_size, hidden_size) that is zero where an input or a neuron has no
            synapse to a neuron. It requires ``backbone_layers=0``.

    >>> tuple(CfCCell(3, 4)(ops.ones((5, 3))).shape)
    (5, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        mode: str = "default",
        activation: str | Callable[..., Any] = "lecun_tanh",
        backbone_units: int = 128,
        backbone_layers: int = 1,
        backbone_dropout: float = 0.0,
        mask: Any = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        if mode not in ("default", "no_gate", "pure"):
            raise ValueError(f"{type(self).__name__}: mode must be 'default', 'no_gate' or 'pure', got {mode!r}")
        if mask is not None and backbone_layers:
            raise ValueError(
                f"{type(self).__name__}: mask must be None with a backbone, which would mix the synapses, got "
                f"backbone_layers={backbone_layers}"
            )
        self.input_size, self.hidden_size, self.mode = input_size, hidden_size, mode
        self.activation, self.backbone_units, self.backbone_layers = activation, backbone_units, backbone_layers
        self.backbone_dropout = check_rate(self, backbone_dropout, "backbone_dropout")
        self._function = find_activation(self, activation)
        heads = hidden_size * (1 if mode == "pure" else 4)
        width = backbone_units if backbone_layers else heads
        # One matrix for input and state is drawn and split, so that the input is projected for all steps at once.
        both: Any = initializers.glorot_uniform((input_size + hidden_size, width), dtype)
        self.weight_ih: Any = Parameter(both[:input_size])
        self.weight_hh: Any = Parameter(both[input_size:])
        self.bias: Any = Parameter(ops.zeros((width,), dtype=dtype))
        self.backbone = ModuleList(
            Linear(backbone_units, backbone_units, dtype=dtype) for _ in range(backbone_layers - 1)
        )
        self.heads = Linear(backbone_units, heads, dtype=dtype) if backbone_layers else None
        if mode == "pure":
            self.tau: Any = Parameter(ops.zeros((hidden_size,), dtype=dtype))
            self.amplitude: Any = Parameter(ops.ones((hidden_size,), dtype=dtype))
        if mask is not None:
            repeated = ops.tile(ops.asarray(mask, dtype=both.dtype), (1, heads // hidden_size))
            self.mask_ih: Any = Buffer(repeated[:input_size])
            self.mask_hh: Any = Buffer(repeated[input_size:])
        self._is_masked = mask is not None

    def forward(self, x: Any, state: Any = None, elapsed: Any = 1.0) -> Tensor:
        """State after ``elapsed`` time; the state before defaults to zero."""
        _check_elapsed(elapsed)
        projected = self.project(x)
        start = self.start(projected) if state is None else state
        return self.step(self.kept(), projected, start, elapsed)  # type: ignore[no-any-return]

    def project(self, x: Any) -> Any:
        """The part of a step that depends only on the input, for one step or for all."""
        _check_inputs(self, x)
        weight = ops.multiply(self.weight_ih, self.mask_ih) if self._is_masked else self.weight_ih
        return ops.linear(x, weight, self.bias)

    def start(self, projected: Any) -> Any:
        """State before the first step: zero."""
        zero = ops.zeros_like(projected[..., :1])
        return ops.broadcast_to(zero, (*projected.shape[:-1], self.hidden_size))

    def kept(self) -> Any:
        """Values that are the same in all steps: the weight of the state."""
        return ops.multiply(self.weight_hh, self.mask_hh) if self._is_masked else self.weight_hh

    def step(self, kept: Any, projected: Any, state: Any, elapsed: Any = 1.0) -> Any:
        """State after one step, given the result of ``project`` for its input."""
        x: Any = ops.add(projected, ops.matmul(state, kept))
        if self.heads is not None:
            x = self._function(x)
            for layer in self.backbone:
                x = self._function(layer(x))
            if self.backbone_dropout:
                x = ops.dropout(x, self.backbone_dropout, training=self.training)
            x = self.heads(x)
        if self.mode == "pure":
            speed = ops.add(ops.abs(self.tau), ops.abs(x))
            decay = ops.multiply(ops.exp(ops.negative(ops.multiply(speed, elapsed))), x)
            return ops.subtract(self.amplitude, ops.multiply(self.amplitude, decay))
        g, h, a, b = ops.split(x, 4, axis=-1)
        start, end = ops.tanh(g), ops.tanh(h)
        gate = ops.sigmoid(ops.add(ops.multiply(a, elapsed), b))
        if self.mode == "no_gate":
            return ops.add(start, ops.multiply(gate, end))
        return ops.add(start, ops.multiply(gate, ops.subtract(end, start)))

    def outputs(self, states: list[Any], axis: int) -> Any:
        """Outputs from the states after each step, along a new axis: the states themselves."""
        return ops.stack(states, axis=axis)


class CfC(Module):
    """Layer of closed-form continuous-time neurons over a sequence; see ``CfCCell``.

    A call returns the outputs of all steps and the state after the last. ``x`` has the axes (batch, time, features),
    the outputs (batch, time, neurons) and the state (batch, neurons).

    With a wiring, there is no backbone: each layer of the wiring is a cell that the synapses connect to the layer
    before it. The outputs are those of the motor neurons, and the state is the concatenation of the layers.

    Args:
        input_size: number of features of ``x``.
        units: a number of neurons, or a ``Wiring``.
        proj_size: number of features that the outputs are projected to; by default they are not projected.
        return_sequences: if false, only the output of the last step is returned.
        batch_first: if false, the axes of ``x`` and of the outputs are (time, batch, features).
        mixed_memory: whether an LSTM updates the state before the neurons in each step, for long-term memory. The
            state is then the pair ``(h, c)``, where ``h`` is the state of the neurons.
        mode, activation, backbone_units, backbone_layers, backbone_dropout: as in ``CfCCell``.

    >>> from ember_ml.nn.wirings import AutoNCP
    >>> outputs, state = CfC(3, AutoNCP(8, 2))(ops.ones((5, 7, 3)))
    >>> tuple(outputs.shape), tuple(state.shape)
    ((5, 7, 2), (5, 8))
    """

    def __init__(
        self,
        input_size: int,
        units: int | Wiring,
        *,
        proj_size: int | None = None,
        return_sequences: bool = True,
        batch_first: bool = True,
        mixed_memory: bool = False,
        mode: str = "default",
        activation: str | Callable[..., Any] = "lecun_tanh",
        backbone_units: int = 128,
        backbone_layers: int = 1,
        backbone_dropout: float = 0.0,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, input_size=input_size)
        self.input_size, self.units, self.proj_size = input_size, units, proj_size
        self.return_sequences, self.batch_first, self.mode = return_sequences, batch_first, mode
        self.mixed_memory = mixed_memory
        if proj_size is not None and proj_size < 1:
            raise ValueError(f"{type(self).__name__}: proj_size must be >= 1 or None, got {proj_size}")
        if isinstance(units, Wiring):
            cells = _wired_cells(units.build(input_size), mode, dtype)
            outputs = units.output_dim
        else:
            _check_wiring(self, "units", units)
            outputs = units
            cells = [
                CfCCell(
                    input_size,
                    units,
                    mode=mode,
                    activation=activation,
                    backbone_units=backbone_units,
                    backbone_layers=backbone_layers,
                    backbone_dropout=backbone_dropout,
                    dtype=dtype,
                )
            ]
        self._outputs = outputs
        self.cells = ModuleList(cells)
        self.projection = None if proj_size is None else Linear(outputs, proj_size, dtype=dtype)
        self._neurons = sum(cell.hidden_size for cell in cells)
        self.memory = LSTMCell(input_size, self._neurons, dtype=dtype) if mixed_memory else None

    def forward(self, x: Any, state: Any = None, timespans: Any = None) -> tuple[Any, Any]:
        """Outputs and last state; ``timespans`` (batch, time) is the elapsed time of each step, by default 1."""
        axis = 1 if self.batch_first else 0
        spans = _spans(timespans, x, axis)
        _check_state(state, x, axis, self._neurons, self.memory)
        if self.memory is None:
            x, end = self._layer_by_layer(x, state, axis, spans)
        else:
            x, end = run(_MixedMemoryCell(list(self.cells), self.memory), x, state, axis=axis, spans=spans)
        x = x if self.return_sequences else ops.take(x, -1, axis=axis)
        # In a wiring with a single layer, the motor neurons are only the first of its neurons.
        x = x if x.shape[-1] == self._outputs else x[..., : self._outputs]
        return x if self.projection is None else self.projection(x), end

    def _layer_by_layer(self, x: Any, state: Any, axis: int, spans: Any) -> tuple[Any, Any]:
        """Run all steps of one layer before the next, so that inputs are projected for all steps at once."""
        ends = []
        at = 0
        for cell in self.cells:
            start = None if state is None else state[..., at : at + cell.hidden_size]
            at += cell.hidden_size
            x, end = run(cell, x, start, axis=axis, spans=spans)
            ends.append(end)
        return x, ends[0] if len(ends) == 1 else ops.concat(ends, axis=-1)


class _MixedMemoryCell:
    """Cell that applies several cells in order, after an LSTM that computes their state from the previous one."""

    def __init__(self, cells: list[Any], memory: LSTMCell) -> None:
        self.cells, self.memory = cells, memory
        self._width = memory.gates * memory.hidden_size

    def project(self, x: Any) -> Any:
        """Input projections of the LSTM and of the first cell, concatenated."""
        return ops.concat([self.memory.project(x), self.cells[0].project(x)], axis=-1)

    def start(self, projected: Any) -> Any:
        return self.memory.start(projected[..., : self._width])

    def kept(self) -> Any:
        return self.memory.kept(), [cell.kept() for cell in self.cells]

    def step(self, kept: Any, projected: Any, state: Any, *elapsed: Any) -> Any:
        of_memory, of_cells = kept
        h, c = self.memory.step(of_memory, projected[..., : self._width], state)
        x = projected[..., self._width :]
        parts: list[Any] = []
        at = 0
        for cell, own in zip(self.cells, of_cells, strict=True):
            x = cell.project(parts[-1]) if parts else x
            parts.append(cell.step(own, x, h[..., at : at + cell.hidden_size], *elapsed))
            at += cell.hidden_size
        return parts[0] if len(parts) == 1 else ops.concat(parts, axis=-1), c

    def outputs(self, states: list[Any], axis: int) -> Any:
        last = self.cells[-1]
        return last.outputs([h[..., h.shape[-1] - last.hidden_size :] for h, _ in states], axis)


def _check_wiring(layer: Module, name: str, wiring: int | Wiring) -> None:
    if isinstance(wiring, int) and wiring < 1:
        raise ValueError(f"{type(layer).__name__}: {name} must be >= 1, got {wiring}")


def _check_inputs(cell: Any, x: Any) -> None:
    """Check the number of inputs, because a single input would be broadcast."""
    if ops.shape(x)[-1] != cell.input_size:
        raise ValueError(f"{type(cell).__name__}: x must have {cell.input_size} features, got {ops.shape(x)[-1]}")


def _check_state(state: Any, x: Any, axis: int, neurons: int, memory: Any) -> None:
    """Check that the initial state, if given, has the shape (batch, neurons)."""
    if state is None:
        return
    if (memory is not None) != (isinstance(state, (tuple, list)) and len(state) == 2):
        raise ValueError("the state must be a pair of h and c with mixed_memory=True, and one tensor without")
    for part in (state,) if memory is None else state:
        if tuple(ops.shape(part)) != (ops.shape(x)[1 - axis], neurons):
            raise ValueError(
                f"the state must have shape {[ops.shape(x)[1 - axis], neurons]}, got {list(ops.shape(part))}"
            )


def _build_wiring(wiring: int | Wiring, input_size: int) -> Wiring:
    return (FullyConnected(wiring) if isinstance(wiring, int) else wiring).build(input_size)


def _wired_cells(wiring: Wiring, mode: str, dtype: Any) -> list[CfCCell]:
    """Cell for each layer of a wiring, masked by the synapses from the layer before and within the layer."""
    rows, before = wiring.sensory_adjacency, list(range(len(wiring.sensory_adjacency)))
    cells = []
    for layer in wiring.layers:
        mask = [[abs(rows[i][j]) for j in layer] for i in before]
        if len(wiring.layers) == 1:
            mask += [[abs(wiring.adjacency[i][j]) for j in layer] for i in layer]
        else:
            mask += [[1] * len(layer) for _ in layer]
        cells.append(CfCCell(len(before), len(layer), mode=mode, backbone_layers=0, mask=mask, dtype=dtype))
        rows, before = wiring.adjacency, layer
    return cells


def _check_elapsed(elapsed: Any) -> None:
    """Raise an error for negative time spans, except in traced code, which cannot read values."""
    is_back = elapsed < 0 if isinstance(elapsed, (int, float)) else is_known_true(ops.any(ops.less(elapsed, 0)))
    if is_back:
        raise ValueError("timespans must be >= 0, got negative ones")


def _spans(timespans: Any, x: Any, axis: int) -> list[Any] | None:
    """Elapsed time of each step for the batch, with an axis to broadcast over the state."""
    if timespans is None:
        return None
    wanted = ops.shape(x)[:2]
    if tuple(ops.shape(timespans)) != tuple(wanted):
        raise ValueError(f"timespans must have shape {list(wanted)}, got {list(ops.shape(timespans))}")
    _check_elapsed(timespans)
    return [ops.expand_dims(span, axis=-1) for span in ops.unstack(timespans, axis=axis)]


def _floating(dtype: Any) -> Any:
    return ops.get_default_dtype() if dtype is None else dtype


def _uniform(shape: tuple[int, ...], low: float, high: float, dtype: Any) -> Any:
    return initializers.uniform(shape, dtype, low=low, high=high)


def _inverse_softplus(x: Any) -> Any:
    """Inverse of softplus."""
    return ops.log(ops.expm1(x))
