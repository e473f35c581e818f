"""Recurrent layers, which process a sequence step by step and carry a state from one step to the next.

A cell computes one step; a layer computes all steps for a batch. The part of a step that depends only on the input is
computed for all steps at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ember_ml import ops
from ember_ml.dtypes import written
from ember_ml.extend import unwrap
from ember_ml.nn import initializers
from ember_ml.nn.modules.checks import check_sizes, find_activation, is_known_true
from ember_ml.nn.modules.containers import ModuleList
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.shape import check_rate
from ember_ml.nn.modules.slots import Parameter
from ember_ml.types import DTypeLike, Tensor


class Cell(Module):
    """Base class of cells: ``x @ weight_ih + bias_ih`` and ``h @ weight_hh + bias_hh`` for ``gates`` gates.

    The weights have the shapes (input_size, gates * hidden_size) and (hidden_size, gates * hidden_size).
    """

    gates = 1
    # Number of tensors in a state.
    parts = 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: DTypeLike | None = None) -> None:
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size
        limit = 1 / math.sqrt(max(hidden_size, 1))
        draw = partial(initializers.uniform, dtype=dtype, low=-limit, high=limit)
        width = self.gates * hidden_size
        self.weight_ih: Any = Parameter(draw((input_size, width)))
        self.weight_hh: Any = Parameter(draw((hidden_size, width)))
        self.bias_ih: Any = Parameter(draw((width,))) if bias else None
        self.bias_hh: Any = Parameter(draw((width,))) if bias else None

    def forward(self, x: Any, state: Any = None) -> Any:
        """State after one step; the state before it defaults to zero."""
        projected = self.project(x)
        if state is not None:
            self.check_state(state, (*projected.shape[:-1], self.hidden_size))
        return self.step(self.kept(), projected, self.start(projected) if state is None else state)

    def check_state(self, state: Any, shape: tuple[int, ...]) -> None:
        """Check that ``state`` is one tensor or a pair, as the cell requires, of exactly ``shape``."""
        is_pair = isinstance(state, (tuple, list)) and len(state) == 2
        if is_pair != (self.parts == 2):
            raise ValueError(
                f"{type(self).__name__}: the state must be "
                f"{'a pair of h and c' if self.parts == 2 else 'one tensor, h'}, got {written(state)}"
            )
        for part in state if is_pair else (state,):
            if tuple(ops.shape(part)) != shape:
                raise ValueError(
                    f"{type(self).__name__}: the state must have shape {list(shape)}, got {list(ops.shape(part))}"
                )

    def project(self, x: Any) -> Any:
        """The part of a step that depends only on the input, for one step or for all."""
        # Both biases are added here, once for all steps.
        bias = None if self.bias_ih is None else ops.add(self.bias_ih, self.bias_hh)
        return ops.linear(x, self.weight_ih, bias)

    def start(self, projected: Any) -> Any:
        """State before the first step: zero."""
        return ops.zeros_like(projected[..., : self.hidden_size])

    def kept(self) -> Any:
        """Values that are the same in all steps, computed once: the weight of the state."""
        return self.weight_hh

    def step(self, kept: Any, projected: Any, state: Any) -> Any:
        """State after one step, given the result of ``project`` for its input."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Cell must define step, got none")

    def outputs(self, states: list[Any], axis: int) -> Any:
        """Outputs of a layer from the states after each step, along a new axis."""
        return ops.stack(states, axis=axis)


class RNNCell(Cell):
    """One step of a simple RNN: ``h = activation(x @ weight_ih + bias_ih + h @ weight_hh + bias_hh)``.

    Args:
        input_size: number of features of ``x``.
        hidden_size: number of features of the state.
        bias: whether to learn the two biases.
        activation: name of an activation, or a function.

    >>> tuple(RNNCell(3, 4)(ops.ones((2, 3))).shape)
    (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        activation: str | Callable[..., Any] = "tanh",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self.activation = activation
        self._function = find_activation(self, activation)

    def step(self, kept: Any, projected: Any, state: Any) -> Any:
        return self._function(ops.add(projected, ops.matmul(state, kept)))


class LSTMCell(Cell):
    """One step of an LSTM. The state is the pair ``(h, c)``.

    The gates ``i, f, g, o``, in this order in the weights, are sums of the projections of ``x`` and ``h``. Then
    ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h = sigmoid(o) * tanh(c)``.

    Args:
        input_size: number of features of ``x``.
        hidden_size: number of features of ``h`` and of ``c``.
        bias: whether to learn the two biases.

    >>> h, c = LSTMCell(3, 4)(ops.ones((2, 3)))
    >>> tuple(h.shape), tuple(c.shape)
    ((2, 4), (2, 4))
    """

    gates = 4
    parts = 2

    def start(self, projected: Any) -> Any:
        zero = super().start(projected)
        return zero, zero

    def step(self, kept: Any, projected: Any, state: Any) -> Any:
        h, c = state
        i, f, g, o = ops.split(ops.add(projected, ops.matmul(h, kept)), 4, axis=-1)
        c = ops.add(ops.multiply(ops.sigmoid(f), c), ops.multiply(ops.sigmoid(i), ops.tanh(g)))
        return ops.multiply(ops.sigmoid(o), ops.tanh(c)), c

    def outputs(self, states: list[Any], axis: int) -> Any:
        return super().outputs([h for h, _ in states], axis)


class GRUCell(Cell):
    """One step of a GRU.

    The gates ``r, z, n`` are in this order in the weights. With their projections of ``x`` and ``h``,
    ``r = sigmoid(r_x + r_h)``, ``z = sigmoid(z_x + z_h)``, ``n = tanh(n_x + r * n_h)`` and ``h = (1 - z) * n + z * h``.

    Args:
        input_size: number of features of ``x``.
        hidden_size: number of features of the state.
        bias: whether to learn the two biases.

    >>> tuple(GRUCell(3, 4)(ops.ones((2, 3))).shape)
    (2, 4)
    """

    gates = 3

    def project(self, x: Any) -> Any:
        """The part of a step that depends only on the input, without ``bias_hh``, which ``r`` multiplies."""
        return ops.linear(x, self.weight_ih, self.bias_ih)

    def step(self, kept: Any, projected: Any, state: Any) -> Any:
        recurrent = ops.linear(state, kept, self.bias_hh)
        r_x, z_x, n_x = ops.split(projected, 3, axis=-1)
        r_h, z_h, n_h = ops.split(recurrent, 3, axis=-1)
        n = ops.tanh(ops.add(n_x, ops.multiply(ops.sigmoid(ops.add(r_x, r_h)), n_h)))
        return ops.add(n, ops.multiply(ops.sigmoid(ops.add(z_x, z_h)), ops.subtract(state, n)))


class Recurrent(Module):
    """Base class of recurrent layers.

    A call returns the outputs of the last layer for every step, and the final states of all layers. ``x`` has the axes
    (batch, time, features), and the outputs have the axes (batch, time, directions * hidden_size). States have the axes
    (layers * directions, batch, hidden_size).

    Args:
        input_size: number of features of ``x``.
        hidden_size: number of features of the state of each layer.
        num_layers: number of stacked layers.
        bias: whether the cells have biases.
        batch_first: if false, the axes of ``x`` and of the outputs are (time, batch, features).
        dropout: rate of dropout between layers, in training.
        bidirectional: whether each layer also runs backwards over the sequence; the outputs of both directions are
            concatenated.
        options: further options of the cell, such as ``activation`` and ``dtype``.
    """

    cell: Callable[..., Cell]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **options: Any,
    ) -> None:
        check_sizes(self, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if num_layers < 1:
            raise ValueError(f"{type(self).__name__}: num_layers must be >= 1, got {num_layers}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.bidirectional = batch_first, bidirectional
        self.dropout = check_rate(self, dropout, "dropout")
        directions = 2 if bidirectional else 1
        self.cells = ModuleList(
            self.cell(input_size if layer == 0 else directions * hidden_size, hidden_size, bias, **options)
            for layer in range(num_layers)
            for _ in range(directions)
        )

    def forward(self, x: Any, state: Any = None, *, lengths: Any = None) -> tuple[Tensor, Any]:
        """Outputs of all steps, and the states after the last step.

        Args:
            state: the initial states, by default zero.
            lengths: number of steps of each sequence of the batch; the rest is padding. Outputs are zero there, states
                are those after the last step of each sequence, and the second direction starts at that step. The steps
                are then computed one by one, without the engine's kernel for whole sequences.
        """
        axis = 1 if self.batch_first else 0
        live = None if lengths is None else self._live(x, lengths, axis)
        directions = 2 if self.bidirectional else 1
        cells = list(self.cells)
        if state is not None and len(ops.shape(x)) == 3:
            cells[0].check_state(state, (len(cells), ops.shape(x)[1 - axis], self.hidden_size))
        starts = [None] * len(cells) if state is None else _unstacked(state)
        ends = []
        for first in range(0, len(cells), directions):
            outputs = []
            for i in range(first, first + directions):
                if live is None:
                    y, end = self.run(cells[i], x, starts[i], axis, backwards=i > first)
                else:
                    y, end = run(cells[i], x, starts[i], axis=axis, backwards=i > first, live=live)
                outputs.append(y)
                ends.append(end)
            x = outputs[0] if directions == 1 else ops.concat(outputs, axis=-1)
            if first + directions < len(cells) and self.dropout:
                x = ops.dropout(x, self.dropout, training=self.training)
        return x, _stacked(ends)

    def _live(self, x: Any, lengths: Any, axis: int) -> list[Any]:
        """For each step, a column that is true for the sequences that have it."""
        x = ops.asarray(x) if isinstance(x, (list, tuple)) else x
        shape = ops.shape(x)
        if len(shape) != 3 or tuple(ops.shape(lengths)) != (shape[1 - axis],):
            raise ValueError(
                f"{type(self).__name__}: lengths must have shape (batch,) for x of 3 axes, got shape "
                f"{list(ops.shape(lengths))} for x of shape {list(shape)}"
            )
        # The sum is on the engine and device of x.
        counts: Any = ops.add(ops.zeros_like(ops.sum(x, axis=(axis, 2)), dtype="int64"), lengths)
        if not ops.is_integer(counts):
            raise TypeError(f"{type(self).__name__}: lengths must be integers, got {ops.dtype(counts).name}")
        if is_known_true(ops.any(ops.logical_or(ops.less(counts, 0), ops.greater(counts, shape[axis])))):
            raise ValueError(
                f"{type(self).__name__}: lengths must be from 0 to the number of steps, {shape[axis]}, got "
                f"{unwrap(counts).tolist()}"
            )
        column = ops.expand_dims(counts, axis=1)
        return [ops.greater(column, step) for step in range(shape[axis])]

    def run(self, cell: Any, x: Any, state: Any, axis: int, backwards: bool) -> tuple[Any, Any]:
        """Outputs of a cell for all steps along ``axis``, and its state after the last."""
        return run(cell, x, state, axis=axis, backwards=backwards)


def run(
    cell: Any,
    x: Any,
    state: Any,
    *,
    axis: int,
    backwards: bool = False,
    spans: list[Any] | None = None,
    live: list[Any] | None = None,
) -> tuple[Any, Any]:
    """Outputs of a cell for all steps along ``axis``, and its state after the last.

    Args:
        spans: elapsed time of each step, for cells that take it.
        live: for each step, whether each sequence has it: a bool column. Other steps leave the state as it is.
    """
    if len(ops.shape(x)) != 3:
        raise ValueError(
            f"x must have 3 axes, (batch, time, features) or (time, batch, features), got shape {list(ops.shape(x))}"
        )
    projected = ops.unstack(cell.project(x), axis=axis)
    if not projected:
        raise ValueError(f"x must have at least 1 step along axis {axis}, got shape {list(ops.shape(x))}")
    if state is None:
        state = cell.start(projected[0])
    steps = list(zip(projected, *([] if spans is None else [spans]), strict=True))
    kept = cell.kept()
    states = []
    for i in reversed(range(len(steps))) if backwards else range(len(steps)):
        step, *span = steps[i]
        new = cell.step(kept, step, state, *span)
        state = new if live is None else _chosen(live[i], new, state)
        states.append(state)
    outputs = cell.outputs(states[::-1] if backwards else states, axis)
    return outputs if live is None else ops.where(ops.stack(live, axis=axis), outputs, 0), state


def _chosen(live: Any, new: Any, old: Any) -> Any:
    """The new state where a sequence has the step, else the old one."""
    if isinstance(new, tuple):
        return tuple(ops.where(live, n, o) for n, o in zip(new, old, strict=True))
    return ops.where(live, new, old)


def _stacked(states: list[Any]) -> Any:
    if isinstance(states[0], tuple):
        return tuple(ops.stack(part) for part in zip(*states, strict=True))
    return ops.stack(states)


def _unstacked(state: Any) -> list[Any]:
    """State of each cell."""
    if isinstance(state, (tuple, list)):
        return list(zip(*(_unstacked(part) for part in state), strict=True))
    return list(ops.unstack(state))


class RNN(Recurrent):
    """Simple recurrent network: layers of ``RNNCell``. Arguments and results are those of ``recurrent.Recurrent``.

    >>> outputs, state = RNN(3, 4)(ops.ones((2, 5, 3)))
    >>> tuple(outputs.shape), tuple(state.shape)
    ((2, 5, 4), (1, 2, 4))
    """

    cell = RNNCell


class LSTM(Recurrent):
    """Long short-term memory: layers of ``LSTMCell``. Arguments and results are those of ``recurrent.Recurrent``.

    The state is the pair ``(h, c)``.

    >>> outputs, (h, c) = LSTM(3, 4, num_layers=2, bidirectional=True)(ops.ones((2, 5, 3)))
    >>> tuple(outputs.shape), tuple(h.shape)
    ((2, 5, 8), (4, 2, 4))
    """

    cell = LSTMCell

    def run(self, cell: Any, x: Any, state: Any, axis: int, backwards: bool) -> tuple[Any, Any]:
        if type(cell) is not LSTMCell:
            return super().run(cell, x, state, axis, backwards)
        h, c = (None, None) if state is None else state
        weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        outputs, h, c = ops.lstm(x, *weights, h, c, axis, backwards)
        return outputs, (h, c)


class GRU(Recurrent):
    """Gated recurrent units: layers of ``GRUCell``. Arguments and results are those of ``recurrent.Recurrent``.

    >>> outputs, state = GRU(3, 4)(ops.ones((2, 5, 3)))
    >>> tuple(outputs.shape), tuple(state.shape)
    ((2, 5, 4), (1, 2, 4))
    """

    cell = GRUCell

    def run(self, cell: Any, x: Any, state: Any, axis: int, backwards: bool) -> tuple[Any, Any]:
        if type(cell) is not GRUCell:
            return super().run(cell, x, state, axis, backwards)
        weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        return ops.gru(x, *weights, state, axis, backwards)
