"""Wirings: the synapses between the neurons of a liquid network, and their polarities.

Sensory neurons are the inputs, motor neurons the outputs. In a neural circuit policy (Lechner et al., 2020), sensory
neurons connect to inter neurons, these to command neurons, and these to each other and to motor neurons. Neurons are
numbered in the order motor, command, inter. A seed gives the same wiring on every engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from ember_ml.ops import random
from ember_ml.spellings import accept_in


class Dice:
    """Random choices determined by a seed, the same on every engine."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._bits: list[int] = []
        self._at = 0

    def below(self, n: int) -> int:
        """Random integer from 0 to ``n - 1``."""
        if self._at == len(self._bits):
            bits = random.bits(max(256, 2 * self._at), key=self.seed)
            self._bits = bits.tolist()  # emberlint: ignore[EMB202] wirings are made of Python numbers
        self._at += 1
        return self._bits[self._at - 1] * n >> 32

    def sample(self, values: Iterable[int], count: int) -> list[int]:
        """``count`` different elements of ``values``, in random order."""
        rest = list(values)
        return [rest.pop(self.below(len(rest))) for _ in range(count)]

    def polarity(self) -> int:
        """1 with probability 2/3, else -1."""
        return (-1, 1, 1)[self.below(3)]


class Wiring:
    """Synapses among ``units`` neurons, of which the first ``output_dim`` are motor neurons.

    ``adjacency[i][j]`` is the polarity of the synapse from neuron ``i`` to neuron ``j``, or 0 if there is none.
    ``sensory_adjacency`` is the same for synapses from the inputs; ``build`` creates it.

    Args:
        units: number of neurons.
        output_dim: number of motor neurons; by default all neurons.
        seed: seed of the random choices.

    >>> wiring = Wiring(2)
    >>> wiring.add_synapse(0, 1, -1)
    >>> wiring.adjacency
    [[0, -1], [0, 0]]
    """

    def __init__(self, units: int, output_dim: int | None = None, seed: int = 0) -> None:
        if units < 1:
            raise ValueError(f"{type(self).__name__}: units must be >= 1, got {units}")
        self.units = units
        self.output_dim = units if output_dim is None else output_dim
        self.seed = seed
        if not 1 <= self.output_dim <= units:
            raise ValueError(f"{type(self).__name__}: output_dim must be from 1 to units={units}, got {output_dim}")
        self.input_dim: int | None = None
        self.adjacency = _matrix(units, units)
        self.sensory_adjacency: list[list[int]] = []
        self._dice = Dice(seed)

    def build(self, input_dim: int) -> Self:
        """Add the synapses from ``input_dim`` inputs, and return the wiring."""
        if self.input_dim is None:
            self.input_dim = input_dim
            self.sensory_adjacency = _matrix(input_dim, self.units)
            self.connect_inputs(input_dim)
        elif self.input_dim != input_dim:
            raise ValueError(
                f"{type(self).__name__}: input_dim must be {self.input_dim}, as it was built before, got {input_dim}"
            )
        return self

    def connect_inputs(self, input_dim: int) -> None:
        """Add the synapses from the inputs: here all possible ones; subclasses may choose others."""
        for i in range(input_dim):
            for j in range(self.units):
                self.add_sensory_synapse(i, j, self._dice.polarity())

    def add_synapse(self, source: int, target: int, polarity: int) -> None:
        """Add a synapse between two neurons; ``polarity`` is 1 or -1."""
        self._add(self.adjacency, source, target, polarity)

    def add_sensory_synapse(self, source: int, target: int, polarity: int) -> None:
        """Add a synapse from an input to a neuron; ``polarity`` is 1 or -1."""
        if self.input_dim is None:
            raise ValueError(
                f"{type(self).__name__}: the wiring must have inputs, got none; build(input_dim) gives it some"
            )
        self._add(self.sensory_adjacency, source, target, polarity)

    def _add(self, matrix: list[list[int]], source: int, target: int, polarity: int) -> None:
        if not (0 <= source < len(matrix) and 0 <= target < self.units):
            raise ValueError(
                f"{type(self).__name__}: source must be from 0 to {len(matrix) - 1} and target from 0 to "
                f"{self.units - 1}, got {source} and {target}"
            )
        if polarity not in (-1, 1):
            raise ValueError(f"{type(self).__name__}: polarity must be 1 or -1, got {polarity!r}")
        matrix[source][target] = polarity

    @property
    def synapse_count(self) -> int:
        """Number of synapses between neurons."""
        return _count(self.adjacency)

    @property
    def sensory_synapse_count(self) -> int:
        """Number of synapses from inputs."""
        return _count(self.sensory_adjacency)

    @property
    def layers(self) -> list[list[int]]:
        """Layers of neurons in the order in which a signal passes through them: here, a single layer."""
        return [list(range(self.units))]

    def type_of_neuron(self, neuron: int) -> str:
        """``"motor"`` or ``"inter"``."""
        return "motor" if neuron < self.output_dim else "inter"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(units={self.units}, output_dim={self.output_dim}, seed={self.seed})"


class FullyConnected(Wiring):
    """Wiring with synapses between all neurons.

    Args:
        units, output_dim, seed: as in ``Wiring``.
        self_connections: whether neurons have synapses to themselves.

    >>> FullyConnected(4, 1).synapse_count, FullyConnected(4, 1, self_connections=False).synapse_count
    (16, 12)
    """

    def __init__(
        self, units: int, output_dim: int | None = None, seed: int = 0, *, self_connections: bool = True
    ) -> None:
        super().__init__(units, output_dim, seed)
        for i in range(units):
            for j in range(units):
                if i != j or self_connections:
                    self.add_synapse(i, j, self._dice.polarity())


class Random(Wiring):
    """Wiring with random synapses.

    Args:
        units, output_dim, seed: as in ``Wiring``.
        sparsity_level: fraction of the possible synapses that are missing, at least 0 and less than 1.

    >>> Random(4, 1, sparsity_level=0.75).build(8).sensory_synapse_count
    8
    """

    def __init__(
        self, units: int, output_dim: int | None = None, seed: int = 0, *, sparsity_level: float = 0.5
    ) -> None:
        super().__init__(units, output_dim, seed)
        if not 0 <= sparsity_level < 1:
            raise ValueError(f"{type(self).__name__}: sparsity_level must be >= 0 and < 1, got {sparsity_level!r}")
        self.sparsity_level = sparsity_level
        for place in self._places(units):
            self.add_synapse(*divmod(place, units), self._dice.polarity())

    def connect_inputs(self, input_dim: int) -> None:
        for place in self._places(input_dim):
            self.add_sensory_synapse(*divmod(place, self.units), self._dice.polarity())

    def _places(self, rows: int) -> list[int]:
        count = rows * self.units
        return self._dice.sample(range(count), round(count * (1 - self.sparsity_level)))


class NCP(Wiring):
    """Neural circuit policy: synapses from inputs to inter neurons, to command neurons, to motor neurons.

    Every neuron has a synapse from the layer before it, and every command neuron has one to a motor neuron.

    Args:
        inter_neurons, command_neurons, motor_neurons: number of neurons in each layer.
        sensory_fanout: number of inter neurons that each input connects to.
        inter_fanout: number of command neurons that each inter neuron connects to.
        recurrent_command_synapses: number of synapses drawn between command neurons; repeats are possible.
        motor_fanin: number of command neurons that connect to each motor neuron.
        seed: seed of the random choices.

    >>> wiring = NCP(4, 3, 1, sensory_fanout=2, inter_fanout=2, recurrent_command_synapses=2, motor_fanin=2, seed=1)
    >>> wiring.units, [wiring.type_of_neuron(i) for i in (0, 1, 7)], wiring.layers
    (8, ['motor', 'command', 'inter'], [[4, 5, 6, 7], [1, 2, 3], [0]])
    """

    def __init__(
        self,
        inter_neurons: int,
        command_neurons: int,
        motor_neurons: int,
        sensory_fanout: int,
        inter_fanout: int,
        recurrent_command_synapses: int,
        motor_fanin: int,
        seed: int = 0,
    ) -> None:
        super().__init__(inter_neurons + command_neurons + motor_neurons, motor_neurons, seed)
        for name, fan, limit in (
            ("sensory_fanout", sensory_fanout, inter_neurons),
            ("inter_fanout", inter_fanout, command_neurons),
            ("motor_fanin", motor_fanin, command_neurons),
        ):
            if not 1 <= fan <= limit:
                raise ValueError(
                    f"{type(self).__name__}: {name} must be from 1 to {limit}, the number of neurons there, got {fan}"
                )
        self.motor = list(range(motor_neurons))
        self.command = list(range(motor_neurons, motor_neurons + command_neurons))
        self.inter = list(range(motor_neurons + command_neurons, self.units))
        self.sensory_fanout = sensory_fanout
        self._fan_out(self.inter, self.command, inter_fanout, self.add_synapse)
        for _ in range(recurrent_command_synapses):
            source, target = (self.command[self._dice.below(command_neurons)] for _ in range(2))
            self.add_synapse(source, target, self._dice.polarity())
        # Fan-in is fan-out with source and target exchanged, so that every command neuron is connected.
        self._fan_out(self.motor, self.command, motor_fanin, lambda to, of, sign: self.add_synapse(of, to, sign))

    def connect_inputs(self, input_dim: int) -> None:
        self._fan_out(range(input_dim), self.inter, self.sensory_fanout, self.add_sensory_synapse)

    def _fan_out(self, sources: Sequence[int], targets: Sequence[int], fan: int, connect: Any) -> None:
        """Connect each source to ``fan`` targets, then each unconnected target to the mean number of sources."""
        missed = set(targets)
        for source in sources:
            for target in self._dice.sample(targets, fan):
                connect(source, target, self._dice.polarity())
                missed.discard(target)
        mean = min(max(len(sources) * fan // len(targets), 1), len(sources))
        for target in sorted(missed):
            for source in self._dice.sample(sources, mean):
                connect(source, target, self._dice.polarity())

    @property
    def layers(self) -> list[list[int]]:
        """Inter neurons, command neurons and motor neurons."""
        return [self.inter, self.command, self.motor]

    def type_of_neuron(self, neuron: int) -> str:
        """``"motor"``, ``"command"`` or ``"inter"``."""
        return "motor" if neuron in self.motor else "command" if neuron in self.command else "inter"


class AutoNCP(NCP):
    """Neural circuit policy of ``units`` neurons, with layer sizes and fan-outs chosen automatically.

    Of the neurons that are not motor neurons, two in five are command neurons. The sparsity determines the fan-outs.

    Args:
        units: number of neurons.
        output_size: number of motor neurons.
        sparsity_level: from 0.1 (dense) to 0.9 (sparse).
        seed: seed of the random choices.

    >>> wiring = AutoNCP(16, 2)
    >>> len(wiring.inter), len(wiring.command), len(wiring.motor)
    (9, 5, 2)
    """

    def __init__(self, units: int, output_size: int, sparsity_level: float = 0.5, seed: int = 0) -> None:
        if output_size < 1 or output_size > units - 3:
            raise ValueError(
                f"{type(self).__name__}: output_size must be from 1 to units - 3, got output_size={output_size}, "
                f"units={units}"
            )
        if not 0.1 <= sparsity_level <= 0.9:
            raise ValueError(f"{type(self).__name__}: sparsity_level must be from 0.1 to 0.9, got {sparsity_level!r}")
        self.sparsity_level = sparsity_level
        density = 1 - sparsity_level
        hidden = units - output_size
        command = max(int(0.4 * hidden), 1)
        inter = hidden - command
        super().__init__(
            inter,
            command,
            output_size,
            sensory_fanout=max(int(inter * density), 1),
            inter_fanout=max(int(command * density), 1),
            recurrent_command_synapses=max(int(command * density * 2), 1),
            motor_fanin=max(int(command * density), 1),
            seed=seed,
        )


def _count(matrix: list[list[int]]) -> int:
    return sum(abs(polarity) for row in matrix for polarity in row)


def _matrix(rows: int, columns: int) -> list[list[int]]:
    return [[0] * columns for _ in range(rows)]


accept_in(vars(), __name__)
