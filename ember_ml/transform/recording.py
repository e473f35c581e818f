"""Steps that are repeated many times. Where the engine records kernels, those of a step are launched at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ember_ml import tree
from ember_ml.dispatch import backend_of
from ember_ml.transform.leaves import engine_of
from ember_ml.tree import Tree


class Recording:
    """Step from a state, a tree of native tensors, to the next one, which has the same shapes and dtypes.

    On CUDA of torch, the kernels of a step are recorded when the recording is created, and launched at once later; what
    a step reads besides its state must stay in the same memory. Other engines call the function for each step.

    Args:
        step: function of a state to the next state. What it does must not depend on values of tensors.
        state: state to record the step with.
    """

    def __init__(self, step: Callable[[Tree], Tree], state: Tree) -> None:
        self._step = step
        leaves = tree.leaves(state)
        backend = backend_of(leaves[0])
        assert backend is not None
        engine = engine_of(backend, "Recording")
        self._recorded: Any = None
        if hasattr(engine, "recorded"):
            self._recorded = engine.recorded(
                lambda *tensors: tree.leaves(step(tree.unflatten(state, list(tensors)))), leaves
            )

    def states(self, state: Tree) -> Iterator[Tree]:
        """The states after a state, without end. Each is valid until the next one is taken."""
        if self._recorded is None:
            while True:
                state = self._step(state)
                yield state
        self._recorded.set(tree.leaves(state))
        while True:
            self._recorded.launch()
            yield tree.unflatten(state, list(self._recorded.tensors))
