"""The exceptions: one small family, each member also the built-in that users would catch."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable

import numpy as np
import pytest

import ember_ml
from ember_ml import errors, ops
from ember_ml.backend import Backend
from ember_ml.dispatch import op
from ember_ml.dtypes import promoted
from ember_ml.nn.tensor import EmberTensor
from ember_ml.types import Tensor, TensorLike

FAMILY = {
    "BackendNotFoundError": (ImportError, ValueError),
    "DeviceNotFoundError": (ValueError,),
    "MissingOperationError": (NotImplementedError,),
    "UnsupportedError": (TypeError,),
    "AxisError": (ValueError, IndexError),
    "LinAlgError": (ValueError,),
    "DistributedError": (RuntimeError,),
    "ForkError": (RuntimeError,),
}


@pytest.mark.parametrize(("name", "builtins"), FAMILY.items())
def test_every_error_is_one_of_ours_and_a_built_in(name: str, builtins: tuple[type[Exception], ...]) -> None:
    error = getattr(errors, name)
    assert issubclass(error, errors.EmberError)
    assert all(issubclass(error, builtin) for builtin in builtins)
    assert str(pickle.loads(pickle.dumps(error("why")))) == "why"
    assert error.__doc__


def test_the_family_is_complete() -> None:
    own = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.EmberError) and value is not errors.EmberError
    }
    assert own == set(FAMILY)
    assert issubclass(errors.PrecisionWarning, UserWarning)


@op(promoted)
def unheard_of(x: TensorLike, /) -> Tensor:
    """Something that no backend has."""
    ...


def test_a_missing_operation_names_itself_and_the_backend(backend: Backend) -> None:
    with pytest.raises(errors.MissingOperationError, match=rf"the {backend.name} backend has no unheard_of"):
        unheard_of([1.0])
    with pytest.raises(NotImplementedError):
        unheard_of(ops.asarray([1.0]))


MISTAKES = {
    "shapes that do not broadcast": (ValueError, lambda: ops.add([1.0, 2.0], [1.0, 2.0, 3.0])),
    "the same with tensors": (ValueError, lambda: ops.add(ops.ones((2,)), ops.ones((3,)))),
    "a string": (TypeError, lambda: ops.add("one", [1.0])),
    "a string second": (TypeError, lambda: ops.add(ops.ones((2,)), "one")),
    "None": (TypeError, lambda: ops.add(None, [1.0])),
    "None second": (TypeError, lambda: ops.add([1.0], None)),
    "a dictionary": (TypeError, lambda: ops.sqrt({"x": 1.0})),
    "an object": (TypeError, lambda: ops.sqrt(object())),
    "a function": (TypeError, lambda: ops.sqrt(len)),
    "rows of different lengths": (ValueError, lambda: ops.add([[1.0], [1.0, 2.0]], 1.0)),
    "words in a list": (TypeError, lambda: ops.add(["one"], 1.0)),
    "floats where integers are needed": (TypeError, lambda: ops.bitwise_and([1.0], [2.0])),
    "an integer that does not fit": (ValueError, lambda: ops.add(ops.cast([1], "int8"), 1000)),
    "dtypes without a common one": (TypeError, lambda: ops.add(ops.cast([1], "uint64"), ops.cast([1], "int8"))),
    "an unknown dtype": (TypeError, lambda: ops.zeros((2,), dtype="float33")),
    "an unknown device": (ValueError, lambda: ops.zeros((2,), device="abacus")),
    "a size that does not match": (ValueError, lambda: ops.reshape(ops.ones((6,)), (4,))),
    "an axis that is not there": (errors.AxisError, lambda: ops.flip(ops.ones((2, 2)), axis=5)),
    "an index that is not there": (IndexError, lambda: ops.take(ops.ones((3,)), [7])),
    "more indices than axes": (IndexError, lambda: ops.index_get(ops.ones((3,)), (0, 0))),
    "too many arguments": (TypeError, lambda: ops.add(1.0, 2.0, 3.0)),  # type: ignore[call-arg]
    "a positional parameter by name": (TypeError, lambda: ops.add(x=1.0, y=2.0)),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_one_class_on_every_engine(mistake: str, backend: Backend) -> None:
    expected, make = MISTAKES[mistake]
    with pytest.raises(expected) as caught:
        make()
    # It is an IndexError as well as a ValueError, and must not be raised for other mistakes of these classes.
    assert isinstance(caught.value, errors.AxisError) == (expected is errors.AxisError)


# Far beyond the memory of any machine, so that nothing is allocated; MLX has no axis of 2**31 elements or more.
HUGE = (2**24, 2**24)


def _column() -> Tensor:
    return ops.zeros((2**24, 1), dtype="int8")


def _row() -> Tensor:
    return ops.zeros((1, 2**24), dtype="int8")


def _view() -> Tensor:
    return ops.broadcast_to(ops.ones(1), HUGE)


TOO_LARGE = {
    "zeros": lambda: ops.zeros(HUGE),
    "zeros along one axis": lambda: ops.zeros(2**48),
    "ones": lambda: ops.ones(HUGE, dtype="float64"),
    "full": lambda: ops.full(HUGE, 2.0),
    "empty": lambda: ops.empty(HUGE),
    "zeros_like": lambda: ops.zeros_like(_view()),
    "ones_like": lambda: ops.ones_like(_view()),
    "full_like": lambda: ops.full_like(_view(), 2.0),
    "empty_like": lambda: ops.empty_like(_view()),
    "eye": lambda: ops.eye(2**24),
    "arange": lambda: ops.arange(2**46),
    "arange of floats": lambda: ops.arange(0.0, 2.0**46),
    "linspace": lambda: ops.linspace(0.0, 1.0, 2**46),
    "random_uniform": lambda: ops.random_uniform(HUGE),
    "random_normal": lambda: ops.random_normal(HUGE),
    "random_permutation": lambda: ops.random_permutation(2**46),
    "asarray": lambda: ops.asarray(np.broadcast_to(np.ones(1, np.float32), HUGE), copy=True),
    "add": lambda: ops.add(_column(), _row()),
    "add of a number": lambda: ops.add(_view(), 1),
    "matmul": lambda: ops.matmul(ops.cast(_column(), "float32"), ops.cast(_row(), "float32")),
    "outer": lambda: ops.outer(ops.ravel(_column()), ops.ravel(_row())),
    "cast": lambda: ops.cast(_view(), "float64"),
    "concatenate": lambda: ops.concatenate([_view(), _view()]),
}


def need_allocation_errors(backend: Backend) -> None:
    if backend.name == "jax":
        pytest.skip("JAX 0.10: a result that does not fit into memory ends the process, as docs/semantics.md says")


@pytest.mark.parametrize("call", TOO_LARGE)
def test_too_little_memory_has_one_class_on_every_engine(call: str, backend: Backend) -> None:
    need_allocation_errors(backend)
    with pytest.raises(MemoryError) as caught:
        ops.to_numpy(TOO_LARGE[call]())
    assert type(caught.value) is MemoryError
    assert any(backend.name in note for note in caught.value.__notes__)


READERS = {
    "to_numpy": ops.to_numpy,
    "eval": ops.eval,
    "tolist": lambda x: EmberTensor(x).tolist(),
    "numpy": lambda x: EmberTensor(x).numpy(),
}


@pytest.mark.parametrize("reader", READERS)
def test_too_little_memory_shows_at_the_latest_when_values_are_read(reader: str, backend: Backend) -> None:
    need_allocation_errors(backend)
    with pytest.raises(MemoryError):
        READERS[reader](ops.add(_column(), _row()))


ALLOCATION_FAILURES = {
    "torch": [
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to ...",
        "[enforce fail at alloc_cpu.cpp:80] data. DefaultCPUAllocator: not enough memory: you tried to allocate ...",
        "MPS backend out of memory (MPS allocated: 17.99 GB, other allocations: 70.94 MB, max allowed: 18.13 GB).",
    ],
    "mlx": [
        "[malloc] Unable to allocate 1125899906842624 bytes.",
        "[metal::malloc] Attempting to allocate 51539607552 bytes which is greater than the maximum allowed ...",
        "cudaMallocAsync(&data, size, stream) failed: out of memory",
    ],
}


def test_failed_allocations_on_any_device_are_memory_errors(backend: Backend) -> None:
    for message in ALLOCATION_FAILURES.get(backend.name, ()):
        assert backend.error_class(RuntimeError(message)) is MemoryError
    assert backend.error_class(RuntimeError("shapes (2,) and (3,) cannot be broadcast")) is not MemoryError


class _Exhausted:
    """A native tensor of one element whose computation does not fit into memory."""

    shape = ()
    ndim = 0

    def __init__(self, message: str) -> None:
        self.message = message

    def item(self) -> float:
        raise RuntimeError(self.message)


@pytest.mark.parametrize(
    "read", [EmberTensor.item, float, bool, "{:.1f}".format], ids=["item", "float", "bool", "format"]
)
def test_numbers_of_lazy_tensors_may_need_more_memory_than_there_is(
    read: Callable[[EmberTensor], object], backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmberTensor, "size", 1)
    x = EmberTensor(ops.ones(()))
    for message in ALLOCATION_FAILURES.get(backend.name, ()):
        x.native = _Exhausted(message)
        with pytest.raises(MemoryError, match=re.escape(message)):
            read(x)
    x.native = _Exhausted("traced values have no number")
    with pytest.raises(RuntimeError, match="traced values have no number"):
        read(x)


# More bytes than 64 bits count.
IMPOSSIBLE = [(2**20,) * 4, (2**62,), (2**64,), 2**64]


@pytest.mark.parametrize("shape", IMPOSSIBLE, ids=str)
def test_a_shape_that_no_tensor_can_have_is_a_value_error(shape: int | tuple[int, ...], backend: Backend) -> None:
    need_allocation_errors(backend)
    for create in (ops.zeros, ops.ones, ops.empty, ops.random_uniform, ops.random_normal):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
            create(shape)
    with pytest.raises(ValueError):  # noqa: PT011
        ops.full(shape, 2.0)
    with pytest.raises(ValueError):  # noqa: PT011
        ops.arange(2**62)
    with pytest.raises(ValueError):  # noqa: PT011
        ops.eye(2**40)


def test_the_engines_own_error_stays_visible() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"add: the shapes of x and y must broadcast, got \[2\] and \[3") as caught:
        ops.add(torch.ones(2), torch.ones(3))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_note_names_operation_dtypes_shapes_and_engine(backend: Backend) -> None:
    x, y = ops.asarray(np.ones((2, 3), np.float32)), ops.asarray(np.ones((4,), np.float32))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is the engine's own
        ops.add(x, y)
    assert caught.value.__notes__ == [f"in ember_ml.ops.add(float32[2, 3], float32[4]) on the {backend.name} backend"]


def test_a_note_shows_values_that_are_no_tensors(backend: Backend) -> None:
    with pytest.raises(ValueError, match="add: numbers must fit into int8, got 1000") as caught:
        ops.add(ops.cast([1], "int8"), 1000)
    assert caught.value.__notes__ == [f"in ember_ml.ops.add(int8[1], 1000) on the {backend.name} backend"]
    with pytest.raises(TypeError) as caught_too:
        ops.add([1.0], "one")
    assert caught_too.value.__notes__ == [f"in ember_ml.ops.add(list, str) on the {backend.name} backend"]


def test_errors_of_definitions_name_every_operation_on_the_way(backend: Backend) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is the engine's own
        _sum(ops.ones((2,)), ops.ones((3,)))
    assert [note.partition("(")[0] for note in caught.value.__notes__] == [
        "in ember_ml.ops.add",
        "in ember_ml.ops._sum",
    ]


def test_shapes_that_are_no_matrices_are_plain_value_errors(backend: Backend) -> None:
    wide, line, point = ops.ones((2, 3)), ops.ones(3), ops.ones(())
    for wrong in (
        lambda: ops.inv(wide), lambda: ops.det(wide), lambda: ops.eigh(wide), lambda: ops.cholesky(line),
        lambda: ops.inv(line), lambda: ops.inv(point), lambda: ops.svd(point), lambda: ops.qr(line),
        lambda: ops.solve(point, line), lambda: ops.solve(wide, line),
    ):  # fmt: skip
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is the engine's own
            wrong()
        assert not isinstance(caught.value, (errors.LinAlgError, errors.AxisError))


def test_there_is_no_axis_in_a_tensor_without_axes(backend: Backend) -> None:
    x = ops.asarray(1.0)
    for operation in (ops.layer_normalization, ops.rms_normalization, ops.sort, ops.argsort):
        with pytest.raises(errors.AxisError):
            operation(x, axis=-1)
    for wrong in (
        lambda: ops.swapaxes(x, 0, 0), lambda: ops.swapaxes(x, -1, 0), lambda: ops.array_split(x, 1),
        lambda: ops.array_split(x, 1, axis=-1), lambda: ops.concat([x, x]), lambda: ops.concat([x, x], axis=-1),
    ):  # fmt: skip
        with pytest.raises(errors.AxisError):
            wrong()


def test_mistakes_that_are_values(backend: Backend) -> None:
    x, line = ops.ones((2, 3)), ops.ones(3)
    for wrong in (
        lambda: ops.permute_dims(line, (0, 1)), lambda: ops.permute_dims(x, (1,)), lambda: ops.permute_dims(x, (0, 0)),
        lambda: ops.random_choice([1, 2], p=0.5), lambda: ops.random_choice([1, 2], p=ops.asarray(0.5)),
        lambda: ops.fftfreq(4, d=0), lambda: ops.fftfreq(4, d=0.0), lambda: ops.rfftfreq(4, d=0),
        lambda: ops.searchsorted(ops.asarray(1.0), line), lambda: ops.searchsorted(x, line),
        lambda: ops.bincount(ops.asarray([], dtype="int64"), line), lambda: ops.bincount([1, 2], line),
    ):  # fmt: skip
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is the engine's own
            wrong()
        assert not isinstance(caught.value, IndexError)
    for wrong in (lambda: ops.segment_sum(x, [0, 1], 0), lambda: ops.segment_max(x, [0, 1], 0)):
        with pytest.raises(IndexError):
            wrong()


@op(promoted)
def _sum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Sum by another name."""
    return ops.add(x, y)


def test_the_errors_are_reachable_from_the_package() -> None:
    assert ember_ml.errors is errors


MESSAGES: dict[str, Callable[[], object]] = {
    r"cov: x and y must have the same number of observations, got 3 and 4": (
        lambda: ops.cov(ops.ones((2, 3)), ops.ones((2, 4)))
    ),
    r"corrcoef: x and y must have the same number of observations, got 2 and 1": (
        lambda: ops.corrcoef(ops.ones((2, 3)), ops.ones((1, 3)), rowvar=False)
    ),
    r"cov: y must have at most 2 axes, got 3": lambda: ops.cov(ops.ones(2), ops.ones((1, 1, 2))),
    r"cov: aweights must have one value for each of 3 observations, got shape \[2\]": (
        lambda: ops.cov(ops.ones((2, 3)), aweights=[1.0, 2.0])
    ),
    r"indexing: an index must have at most 1 part, one per dimension, got 2": lambda: EmberTensor([1.0])[0, 0],
    r"indexing: an index must have at most 0 parts, one per dimension, got 1": lambda: EmberTensor(1.0)[0],
    r"reshape: shape must have lengths >= -1, got \(-2,\)": lambda: ops.reshape(ops.ones(4), (-2,)),
    r"reshape: shape must have lengths >= -1, got -3": lambda: ops.reshape(ops.ones(4), -3),
    r"zeros: shape must have lengths >= 0, got \(2, -1\)": lambda: ops.zeros((2, -1)),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_a_message_names_the_parameter_of_the_user(text: str, backend: Backend) -> None:
    with pytest.raises((ValueError, IndexError), match=f"^{text}"):
        MESSAGES[text]()


def test_no_sequence_of_tensors_is_a_type_error(backend: Backend) -> None:
    for operation in (ops.stack, ops.concatenate):
        with pytest.raises(TypeError, match=r": arrays must be a sequence of tensors, got None"):
            operation(None)  # type: ignore[arg-type]


def test_what_engines_say_in_their_own_words_names_the_parameter(backend: Backend) -> None:
    with pytest.raises(ValueError, match="celu: alpha must not be 0, got 0"):
        ops.celu([1.0, -1.0], alpha=0)
    with pytest.raises(ValueError, match=r"stack: arrays must have one shape, got \[2\] and \[3\]"):
        ops.stack([ops.ones(2), ops.ones(3)])
