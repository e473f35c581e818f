"""The exceptions: one small family, each member also the built-in that users would catch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import ember_ml
from ember_ml import errors, ops
from ember_ml.backend import Backend
from ember_ml.dispatch import op
from ember_ml.dtypes import promoted
from ember_ml.types import Tensor, TensorLike

FAMILY = {
    "BackendNotFoundError": (ImportError, ValueError),
    "MissingOperationError": (NotImplementedError,),
    "UnsupportedError": (TypeError,),
    "AxisError": (ValueError, IndexError),
    "LinAlgError": (ValueError,),
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
    "an axis that is not there": (ValueError, lambda: ops.flip(ops.ones((2, 2)), axis=5)),
    "an index that is not there": (IndexError, lambda: ops.take(ops.ones((3,)), [7])),
    "too many arguments": (TypeError, lambda: ops.add(1.0, 2.0, 3.0)),  # type: ignore[call-arg]
    "a positional parameter by name": (TypeError, lambda: ops.add(x=1.0, y=2.0)),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_one_class_on_every_engine(mistake: str, backend: Backend) -> None:
    expected, make = MISTAKES[mistake]
    with pytest.raises(expected) as caught:
        make()
    assert isinstance(caught.value, expected)


def test_the_engines_own_error_stays_visible() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="size of tensor a") as caught:
        ops.add(torch.ones(2), torch.ones(3))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_note_names_operation_dtypes_shapes_and_engine(backend: Backend) -> None:
    x, y = ops.asarray(np.ones((2, 3), np.float32)), ops.asarray(np.ones((4,), np.float32))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is the engine's own
        ops.add(x, y)
    assert caught.value.__notes__ == [f"in ember_ml.ops.add(float32[2, 3], float32[4]) on the {backend.name} backend"]


def test_a_note_shows_values_that_are_no_tensors(backend: Backend) -> None:
    with pytest.raises(ValueError, match="cannot hold") as caught:
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
