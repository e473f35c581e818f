"""Error messages and warnings: what they begin with, what they say, and that they are the same on every engine."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops, optim, training, transform
from ember_ml.backend import Backend, use_backend
from ember_ml.dispatch import REGISTRY, op
from ember_ml.dtypes import promoted
from ember_ml.errors import warn
from ember_ml.nn import modules
from ember_ml.nn.tensor import EmberTensor
from ember_ml.optim import schedules
from ember_ml.tools import mistakes
from ember_ml.types import Tensor, TensorLike

PAGE = Path(__file__).parents[1] / "docs" / "messages.md"
SAMPLES = mistakes.samples()


def raised(code: str) -> Exception:
    error = mistakes.error_of(code)
    assert error is not None, code
    return error


def test_every_operation_has_a_sample() -> None:
    assert set(REGISTRY) <= {sample.subject for sample in SAMPLES}


def _listed(*sections: str) -> set[str]:
    return {sample.subject for sample in SAMPLES if sample.section in sections}


def test_every_layer_has_a_sample() -> None:
    public = {getattr(modules, name).__name__ for name in modules.__all__ if inspect.isclass(getattr(modules, name))}
    assert public <= _listed("layers")


def test_all_else_that_is_public_has_a_sample() -> None:
    assert {name for name in optim.__all__ if name not in ("schedules", "global_norm")} <= _listed("optimizers")
    assert {name for name, value in vars(schedules).items() if _is_schedule(name, value)} <= _listed("schedules")
    assert set(training.__all__) <= _listed("training")
    assert set(transform.__all__) <= _listed("transforms")


def _is_schedule(name: str, value: object) -> bool:
    return inspect.isroutine(value) and not name.startswith("_") and value.__module__ == schedules.__name__


@pytest.mark.parametrize("section", dict.fromkeys(sample.section for sample in SAMPLES))
def test_the_class_of_a_mistake_is_one_on_every_engine_and_so_is_its_text(section: str, backend: Backend) -> None:
    for sample in SAMPLES:
        if sample.section != section:
            continue
        error = raised(sample.code)
        with use_backend("numpy"):
            expected = raised(sample.code)
        assert type(error) is type(expected), sample.code
        if sample.code not in mistakes.ENGINE_TEXTS:
            assert mistakes.text_of(error) == mistakes.text_of(expected), sample.code


@pytest.mark.skipif(
    not {"numpy", "torch", "mlx"} <= set(ember_ml.get_available_backends()), reason="all engines are compared"
)
def test_texts_that_quote_an_engine_differ() -> None:
    for code in mistakes.ENGINE_TEXTS:
        texts = set()
        for name in ("numpy", "torch", "mlx"):
            with use_backend(name):
                texts.add(mistakes.text_of(raised(code)))
        assert len(texts) > 1, code


# What users write in a sample, where it is not the name that is called first.
_WRITTEN = {
    "[0] =": "item assignment",
    "[5] =": "item assignment",
    "[0.5]": "indexing",
    "[0, 0]": "indexing",
    "list(": "iter",
    "range(": "index",
    "f'": "format",
    " += ": "add",
    " + ": "add",
    " @ ": "matmul",
    "compile(ops.add)": "add",
    "checkpoint(ops.add)": "add",
}


@pytest.mark.parametrize("section", dict.fromkeys(sample.section for sample in SAMPLES))
def test_messages_begin_with_the_name_that_was_written(section: str) -> None:
    with use_backend("numpy"):
        for sample in SAMPLES:
            if sample.section == section:
                text = mistakes.text_of(raised(sample.code))
                names = re.findall(r"\w+", sample.code.partition("'")[0])
                names += [name for part, name in _WRITTEN.items() if part in sample.code]
                begin = re.match(r"(item assignment|\w+)(\.__init__)?(:|\(\)) ", text)
                assert begin is not None, (sample.code, text)
                assert begin[1] in names, (sample.code, text)


@pytest.mark.parametrize("section", dict.fromkeys(sample.section for sample in SAMPLES))
def test_messages_say_what_must_hold(section: str) -> None:
    # Python's own words for arguments that do not fit a signature.
    own = r"unknown option|missing .*argument|too many positional|takes \w+ (positional )?argument|multiple values"
    with use_backend("numpy"):
        for sample in SAMPLES:
            if sample.section == section and sample.code not in mistakes.ENGINE_TEXTS:
                text = mistakes.text_of(raised(sample.code))
                assert re.search(rf"\bmust\b|requires|{own}", text), (sample.code, text)


def test_an_alias_is_called_by_its_name(backend: Backend) -> None:
    with pytest.raises(TypeError, match=r"^array: unknown option 'requires_grad'"):
        ops.array([1.0], requires_grad=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"^amax: axis must be"):
        ops.amax(ops.max([[1.0, 2.0]], axis=0), axis=5)
    with pytest.raises(ValueError, match=r"^max: axis must be"):
        ops.amax(ops.max([[1.0, 2.0]], axis=5), axis=0)
    with pytest.raises(TypeError, match=r"^EmberTensor: "):
        EmberTensor("one")
    with pytest.raises(ValueError, match=r"^amax: axis must be"):
        EmberTensor([1.0]).amax(axis=5)
    with pytest.raises(ValueError, match=r"^max: axis must be"):
        _call(ops.amax)  # by a line that does not show the name


def _call(f: Callable[..., Tensor]) -> Tensor:
    return f([1.0], axis=5)


def test_the_outermost_operation_is_named_and_notes_name_all(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"^norm: axis must be from -2 to 1 for a 2-d tensor, got 7") as caught:
        ops.norm([[1.0, 2.0]], axis=7)
    assert caught.value.__notes__[-1] == f"in ember_ml.ops.norm(float32[1, 2], axis=7) on the {backend.name} backend"


@op(promoted)
def strict(x: TensorLike, /) -> Tensor:
    """An operation of a user's."""
    if len(ops.shape(x)) > 1:
        raise ValueError("rows only")
    return ops.sum(x, axis=3)


def test_errors_of_functions_that_users_write_keep_their_words(backend: Backend) -> None:
    def fail(x: Tensor) -> Tensor:
        raise ValueError("my own words")

    with pytest.raises(ValueError, match=r"^my own words"):
        ops.map(fail, ops.asarray([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"^rows only"):
        strict([[1.0]])
    with pytest.raises(ValueError, match=r"^sum: axis must be"):
        strict([1.0])


def test_a_layer_is_named_and_its_own_option(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"^Linear: in_features must be >= 0, got -1"):
        nn.Linear(-1, 2)
    with pytest.raises(ValueError, match=r"^Linear: x must have 3 features along its last axis, got shape \[4, 5\]"):
        nn.Sequential(nn.Linear(3, 2))(ops.ones((4, 5)))


def test_a_batch_that_was_flattened_is_noticed() -> None:
    with pytest.raises(
        ValueError, match=r"got shape \[12\]; nn.Flatten keeps the axis of the batch, ops.flatten does not"
    ):
        nn.Linear(3, 2)(ops.flatten(ops.ones((4, 3))))
    for sizes in ((10,), (0,), (2, 6)):
        with pytest.raises(ValueError, match=r"got shape \[[\d, ]+\]\n"):
            nn.Linear(3, 2)(ops.ones(sizes))


def test_item_assignment_is_named(backend: Backend) -> None:
    x = EmberTensor([1, 2])
    with pytest.raises(TypeError, match=r"^item assignment: values for an int64 tensor must be .* got float32"):
        x[0] = 1.5
    with pytest.raises(TypeError, match=r"^add: a result that is assigned to an int64 tensor"):
        x += 0.5


def test_a_warning_points_at_the_line_that_called_the_package(backend: Backend) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ops.set_default_device("sundial", fallback=True)
        line = sys._getframe().f_lineno - 1
    ops.set_default_device(None)
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


def test_warn_points_at_its_caller_if_that_is_outside() -> None:
    with pytest.warns(UserWarning, match=r"^told$") as caught:
        warn("told")
    assert caught[0].filename == __file__


def test_no_other_module_calls_warnings() -> None:
    package = Path(ember_ml.__file__).parent
    found = [path.name for path in package.rglob("*.py") if re.search(r"\bwarnings\.warn\(", path.read_text("utf-8"))]
    assert found == ["errors.py"]


def test_samples_leave_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with use_backend("numpy"):
        for sample in SAMPLES:
            raised(sample.code)
    assert not list(tmp_path.iterdir())
    assert np.all(ops.to_numpy(ops.ones((2,))) == 1)


def test_the_page_lists_what_raises_an_error_and_refuses_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = mistakes.Sample("layers", "stack", "ops.stack(None)")
    monkeypatch.setattr(mistakes, "samples", lambda: [wrong])
    row = "| `ops.stack(None)` | `TypeError`: stack: arrays must be a sequence of tensors, got None |"
    assert row in mistakes.page().splitlines()
    monkeypatch.setattr(mistakes, "samples", lambda: [wrong, mistakes.Sample("layers", "stack", "ops.stack([1.0])")])
    with pytest.raises(AssertionError, match=r"got none from ops\.stack\(\[1\.0\]\)"):
        mistakes.page()
