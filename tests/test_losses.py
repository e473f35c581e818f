"""Losses against PyTorch's own and scikit-learn's definitions, from logits that overflow, and what they refuse."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import ember_ml
from ember_ml import ops, transform
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.testing.comparison import host, is_on_cpu
from ember_ml.testing.samples import calls

INF = math.inf
RNG = np.random.default_rng(11)
TRUE, GUESS = RNG.normal(size=(2, 6, 5)) * 2
LABELS = RNG.integers(0, 2, (6, 5)).astype(float)
CHANCES = RNG.uniform(0.02, 0.98, (6, 5))
SHARES = RNG.dirichlet(np.ones(5), 6)
GUESSED_SHARES = RNG.dirichlet(np.ones(5), 6)
CLASSES = RNG.integers(0, 5, 6)

tensor = torch.tensor


def _focal(y: torch.Tensor, z: torch.Tensor, reduction: str) -> torch.Tensor:
    """As in torchvision."""
    p = torch.sigmoid(z)
    truth = p * y + (1 - p) * (1 - y)
    loss = functional.binary_cross_entropy_with_logits(z, y, reduction="none") * (1 - truth) ** 2
    loss = loss * (0.25 * y + 0.75 * (1 - y))
    return {"mean": loss.mean, "sum": loss.sum, "none": lambda: loss}[reduction]()


def _reduced(losses: torch.Tensor, reduction: str) -> torch.Tensor:
    return {"mean": losses.mean, "sum": losses.sum, "none": lambda: losses}[reduction]()


# Name: the loss, PyTorch's own of (y_true, y_pred), and what both are given.
CASES: dict[str, tuple[Any, Any, tuple[np.ndarray, ...]]] = {
    "mse": (ops.mse, lambda y, z, r: functional.mse_loss(z, y, reduction=r), (TRUE, GUESS)),
    "mae": (ops.mae, lambda y, z, r: functional.l1_loss(z, y, reduction=r), (TRUE, GUESS)),
    "huber": (ops.huber_loss, lambda y, z, r: functional.huber_loss(z, y, reduction=r), (TRUE, GUESS)),
    "huber, delta": (
        lambda y, z, reduction: ops.huber_loss(y, z, delta=0.3, reduction=reduction),
        lambda y, z, r: functional.huber_loss(z, y, delta=0.3, reduction=r),
        (TRUE, GUESS),
    ),
    "log cosh": (
        ops.log_cosh_loss,
        lambda y, z, r: _reduced(torch.log(torch.cosh(y - z)), r),
        (TRUE, GUESS),
    ),
    "binary": (
        ops.binary_crossentropy,
        lambda y, z, r: functional.binary_cross_entropy(z, y, reduction=r),
        (LABELS, CHANCES),
    ),
    "binary, logits": (
        lambda y, z, reduction: ops.binary_crossentropy(y, z, from_logits=True, reduction=reduction),
        lambda y, z, r: functional.binary_cross_entropy_with_logits(z, y, reduction=r),
        (LABELS, GUESS * 5),
    ),
    "categorical, logits": (
        lambda y, z, reduction: ops.categorical_crossentropy(y, z, from_logits=True, reduction=reduction),
        lambda y, z, r: functional.cross_entropy(z, y, reduction=r),
        (SHARES, GUESS * 5),
    ),
    "categorical, smoothed": (
        lambda y, z, reduction: ops.categorical_crossentropy(
            y, z, from_logits=True, label_smoothing=0.1, reduction=reduction
        ),
        lambda y, z, r: functional.cross_entropy(z, y, label_smoothing=0.1, reduction=r),
        (SHARES, GUESS * 5),
    ),
    "categorical": (
        ops.categorical_crossentropy,
        lambda y, p, r: _reduced(-(y * p.log()).sum(-1), r),
        (SHARES, GUESSED_SHARES),
    ),
    "sparse, logits": (
        lambda y, z, reduction: ops.sparse_categorical_crossentropy(y, z, from_logits=True, reduction=reduction),
        lambda y, z, r: functional.cross_entropy(z, y, reduction=r),
        (CLASSES, GUESS * 5),
    ),
    "sparse, smoothed": (
        lambda y, z, reduction: ops.sparse_categorical_crossentropy(
            y, z, from_logits=True, label_smoothing=0.1, reduction=reduction
        ),
        lambda y, z, r: functional.cross_entropy(z, y, label_smoothing=0.1, reduction=r),
        (CLASSES, GUESS * 5),
    ),
    "sparse": (
        ops.sparse_categorical_crossentropy,
        lambda y, p, r: functional.nll_loss(p.log(), y, reduction=r),
        (CLASSES, GUESSED_SHARES),
    ),
    "kl": (
        ops.kl_divergence,
        lambda y, p, r: _reduced(functional.kl_div(p.log(), y, reduction="none").sum(-1), r),
        (SHARES, GUESSED_SHARES),
    ),
    "cosine": (
        ops.cosine_similarity_loss,
        lambda y, z, r: functional.cosine_embedding_loss(y, z, torch.ones(6), reduction=r),
        (TRUE, GUESS),
    ),
    "smooth l1": (
        lambda y, z, reduction: ops.divide(ops.huber_loss(y, z, delta=0.5, reduction=reduction), 0.5),
        lambda y, z, r: functional.smooth_l1_loss(z, y, beta=0.5, reduction=r),
        (TRUE, GUESS),
    ),
    "triplet": (
        ops.triplet_loss,
        lambda a, p, n, r: functional.triplet_margin_loss(a, p, n, reduction=r),
        (TRUE, GUESS, CHANCES),
    ),
    "triplet, p": (
        lambda a, p, n, reduction: ops.triplet_loss(a, p, n, p=1.5, margin=2.0, reduction=reduction),
        lambda a, p, n, r: functional.triplet_margin_loss(a, p, n, p=1.5, margin=2.0, reduction=r),
        (TRUE, GUESS, CHANCES),
    ),
    "focal": (
        lambda y, z, reduction: ops.focal_loss(y, z, from_logits=True, reduction=reduction),
        _focal,
        (LABELS, GUESS * 3),
    ),
}


def on_host(x: Any) -> np.ndarray:
    return np.asarray(ops.to_numpy(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_pytorch(name: str, dtype: str, backend: Backend) -> None:
    loss, oracle, given = CASES[name]
    arrays = [a if a is CLASSES else a.astype(dtype) for a in given]
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    for reduction in ("mean", "sum", "none"):
        result = on_host(loss(*map(ops.asarray, arrays), reduction=reduction))
        expected = oracle(*map(tensor, arrays), reduction).numpy()
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=2 * tolerance, atol=tolerance, err_msg=reduction)


@pytest.mark.parametrize("blank", [0, 3])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-10)])
def test_ctc_is_that_of_pytorch(blank: int, dtype: str, tolerance: float, backend: Backend) -> None:
    outputs = RNG.normal(size=(4, 12, 5)).astype(dtype) * 3
    targets = np.asarray([[1, 2, 2, 4], [4, 1, 4, 1], [2, 2, 2, 2], [1, 1, 4, 2]])
    lengths, times = np.asarray([4, 3, 2, 0]), np.asarray([12, 5, 3, 7])
    logs = functional.log_softmax(tensor(outputs), -1).transpose(0, 1)
    for reduction in ("sum", "none"):
        expected = functional.ctc_loss(
            logs, tensor(targets), tensor(times), tensor(lengths), blank=blank, reduction=reduction
        )
        result = ops.ctc_loss(targets, ops.asarray(outputs), lengths, times, mask_index=blank, reduction=reduction)
        np.testing.assert_allclose(on_host(result), expected.numpy(), rtol=tolerance)


def test_ctc_of_a_target_that_does_not_fit_is_infinite(backend: Backend) -> None:
    losses = ops.ctc_loss([[1, 1], [1, 2]], ops.zeros((2, 2, 3)), [2, 2], [2, 2], reduction="none")
    np.testing.assert_allclose(on_host(losses), [np.inf, np.log(9.0)], rtol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3), ("float32", 1e-5), ("float64", 1e-10)])
def test_ctc_of_logits_that_rule_a_class_out(dtype: str, tolerance: float, backend: Backend) -> None:
    """Its gradient is that of logits so low that nothing is left; a target that is impossible has none."""
    outputs = np.random.default_rng(2).normal(size=(4, 6, 4)).astype(dtype)
    outputs[0, 0, 1] = outputs[1, 2, 0] = outputs[1, 3, 2] = outputs[2, :, 3] = -np.inf
    targets = np.asarray([[1, 2, 2], [2, 3, 1], [1, 3, 1], [1, 1, 1]])
    lengths, times = np.asarray([3, 2, 3, 3]), np.asarray([6, 5, 6, 4])

    def losses(x: Any) -> Any:
        return ops.ctc_loss(targets, x, lengths, times, reduction="none")

    lowered = tensor(np.where(np.isinf(outputs), -300.0, outputs.astype("float64")))[:2].requires_grad_()
    logs = functional.log_softmax(lowered, -1).transpose(0, 1)
    expected = functional.ctc_loss(logs, tensor(targets)[:2], tensor(times)[:2], tensor(lengths)[:2], reduction="none")
    expected.sum().backward()
    result = on_host(losses(ops.asarray(outputs)))
    np.testing.assert_allclose(result[:2], expected.detach().numpy(), rtol=tolerance)
    assert np.isinf(result[2:]).all()
    gradient = on_host(transform.grad(lambda x: ops.sum(losses(x)))(ops.asarray(outputs)))
    np.testing.assert_allclose(gradient[:2], lowered.grad.numpy(), rtol=tolerance, atol=tolerance)
    assert not gradient[2:].any()


def test_logits_are_not_rounded_to_probabilities_first(backend: Backend) -> None:
    wrong = ops.categorical_crossentropy([[1.0, 0.0]], [[0.0, 500.0]], from_logits=True)
    assert float(wrong) == 500.0
    assert float(ops.sparse_categorical_crossentropy([0], [[0.0, 500.0]], from_logits=True)) == 500.0
    assert float(ops.binary_crossentropy([1.0], [-500.0], from_logits=True)) == 500.0
    assert float(ops.focal_loss([1.0], [-500.0], alpha=None, from_logits=True)) == 500.0
    # The probability of the truth is 1 less 4.5e-5: a difference of rounded numbers would not have these digits.
    surely = on_host(ops.binary_crossentropy([1.0], [10.0], from_logits=True))
    np.testing.assert_allclose(surely, np.log1p(np.exp(-10.0)), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_infinite_logits_cost_nothing_where_they_are_right(dtype: str, backend: Backend) -> None:
    if dtype == "float64" and not backend.has_float64():
        pytest.skip(f"{backend.name} has no {dtype} here")
    if backend.name == "torch" and not is_on_cpu(backend):
        pytest.skip("torch's own loss makes NaN of infinite logits, and a look at it waits for the device")
    truth = ops.asarray([0.0, 1.0, 0.0, 1.0, 0.5, 0.5, 1.0], dtype=dtype)
    logits = ops.asarray([-INF, INF, INF, -INF, INF, -INF, math.nan], dtype=dtype)
    expected = [0, 0, INF, INF, INF, INF, math.nan]
    for loss in (ops.binary_crossentropy, ops.focal_loss):
        found = loss(truth, logits, from_logits=True, reduction="none")
        np.testing.assert_array_equal(host(found).astype(float), expected)
        compiled = transform.compile(lambda y, x, loss=loss: loss(y, x, from_logits=True, reduction="none"))
        np.testing.assert_array_equal(host(compiled(truth, logits)).astype(float), expected)
    assert float(ops.binary_crossentropy(truth[:2], logits[:2], from_logits=True)) == 0


def test_gradients_at_infinite_logits(backend: Backend) -> None:
    truth, logits = ops.asarray([0.0, 1.0, 0.0, 1.0, 0.5, 0.0]), ops.asarray([-INF, INF, INF, -INF, -INF, 0.0])
    gradients = transform.grad(lambda x: ops.binary_crossentropy(truth, x, from_logits=True, reduction="sum"))(logits)
    np.testing.assert_array_equal(host(gradients), [0, 0, 1, -1, -0.5, 0.5])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("gamma", [0.0, 0.25, 1.0, 2.0])
def test_the_focal_loss_of_what_is_certain_has_a_gradient(gamma: float, dtype: str, backend: Backend) -> None:
    logits = ops.asarray([1e4, -1e4, -1e4, 1e4, 120.0], dtype=dtype)

    def loss(x: Any) -> Any:
        return ops.focal_loss([1, 0, 1, 0, 1], x, alpha=None, gamma=gamma, from_logits=True, reduction="none")

    np.testing.assert_allclose(on_host(loss(logits)), [0, 0, 1e4, 1e4, 0], atol=1e-12)
    np.testing.assert_allclose(
        on_host(transform.grad(lambda x: ops.sum(loss(x)))(logits)), [0, 0, -1, 1, 0], atol=1e-12
    )


def test_probabilities_of_zero_and_one_are_kept_off_by_eps(backend: Backend) -> None:
    largest = -np.log(np.finfo(np.float32).eps)
    for loss in (
        ops.binary_crossentropy([1.0, 0.0], [0.0, 1.0]),
        ops.categorical_crossentropy([[1.0, 0.0]], [[0.0, 1.0]]),
        ops.sparse_categorical_crossentropy([0], [[0.0, 1.0]]),
    ):
        np.testing.assert_allclose(on_host(loss), largest, rtol=1e-6)
    assert float(ops.kl_divergence([[0.0, 1.0]], [[0.0, 1.0]])) == 0.0


def test_hinge_loss_is_that_of_scikit_learn(backend: Backend) -> None:
    sk = pytest.importorskip("sklearn.metrics", reason="it computes what is expected")
    signs = LABELS[:, 0] * 2 - 1
    expected = sk.hinge_loss(signs, GUESS[:, 0])
    for labels in (signs, LABELS[:, 0]):
        np.testing.assert_allclose(on_host(ops.hinge_loss(labels, GUESS[:, 0])), expected, rtol=1e-9)


def test_cross_entropy_is_that_of_scikit_learn(backend: Backend) -> None:
    sk = pytest.importorskip("sklearn.metrics", reason="it computes what is expected")
    expected = sk.log_loss(CLASSES, GUESSED_SHARES, labels=range(5))
    np.testing.assert_allclose(on_host(ops.sparse_categorical_crossentropy(CLASSES, GUESSED_SHARES)), expected)
    expected = sk.log_loss(LABELS[:, 0], CHANCES[:, 0])
    np.testing.assert_allclose(on_host(ops.binary_crossentropy(LABELS[:, 0], CHANCES[:, 0])), expected)


def test_classes_may_be_along_any_axis(backend: Backend) -> None:
    logits = RNG.normal(size=(2, 3, 4))
    classes = RNG.integers(0, 3, (2, 4))
    expected = functional.cross_entropy(tensor(logits), tensor(classes), reduction="none").numpy()
    result = ops.sparse_categorical_crossentropy(classes, logits, from_logits=True, axis=1, reduction="none")
    np.testing.assert_allclose(on_host(result), expected, rtol=1e-10)
    one_hot = ops.one_hot(classes, 3, axis=1, dtype="float64")
    result = ops.categorical_crossentropy(one_hot, logits, from_logits=True, axis=1, reduction="none")
    np.testing.assert_allclose(on_host(result), expected, rtol=1e-10)


def test_other_names_are_the_same_functions() -> None:
    assert ops.mse is ops.mean_squared_error
    assert ops.mae is ops.mean_absolute_error


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ops.mse([1.0], [1.0], reduction="median"),
        lambda: ops.hinge_loss([1.0], [1.0], reduction="median"),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], [1], [1], reduction="median"),
        lambda: ops.mse([1.0, 2.0], [[1.0], [2.0]]),
        lambda: ops.mae([1.0, 2.0], [1.0]),
        lambda: ops.binary_crossentropy([1.0, 0.0], [[0.5], [0.5]]),
        lambda: ops.huber_loss([1.0], [1.0], delta=0.0),
        lambda: ops.huber_loss([1.0], [1.0], delta=-1.0),
        lambda: ops.binary_crossentropy([1.0], [0.5], label_smoothing=1.5),
        lambda: ops.sparse_categorical_crossentropy([[0]], [[0.5, 0.5]]),
        lambda: ops.triplet_loss([[1.0]], [[1.0]], [[1.0]], p=0),
        lambda: ops.ctc_loss([1], [[[0.0, 0.0]]], [1], [1]),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], 1, [1]),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], [1], 1),
        lambda: ops.ctc_loss([[1]], [[0.0, 0.0]], [1], [1]),
        lambda: ops.ctc_loss([[1], [1]], [[[0.0, 0.0]]], [1], [1]),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], [1, 1], [1]),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], [1], [1, 1]),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], [1], [1], mask_index=2),
        lambda: ops.ctc_loss([[1]], ops.zeros((1, 0, 2)), [1], [0]),
    ],
)
def test_bad_values_are_value_errors(backend: Backend, wrong: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
        wrong()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ops.sparse_categorical_crossentropy([2], [[0.5, 0.5]]),
        lambda: ops.sparse_categorical_crossentropy([-1], [[0.5, 0.5]]),
        lambda: ops.ctc_loss([[2]], [[[0.0, 0.0]]], [1], [1]),
        lambda: ops.ctc_loss([[-1]], [[[0.0, 0.0]]], [1], [1]),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], [2], [1]),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], [1], [2]),
        lambda: ops.ctc_loss([[1]], [[[0.0, 0.0]]], [1], [-1]),
    ],
)
def test_classes_and_lengths_out_of_range_are_index_errors(backend: Backend, wrong: Any) -> None:
    with pytest.raises(IndexError):
        wrong()


@pytest.mark.parametrize(
    "loss",
    [
        ops.sparse_categorical_crossentropy,
        partial(ops.sparse_categorical_crossentropy, from_logits=True),
        partial(ops.sparse_categorical_crossentropy, from_logits=True, label_smoothing=0.1),
        partial(ops.linear_crossentropy, weight=np.eye(3, dtype="float32"), chunk=2),
    ],
    ids=["probabilities", "logits", "smoothing", "linear"],
)
@pytest.mark.parametrize("labels", [[0, 1, -100], [0, -1, 3], [3, 1, 2], [0, 1, 7]], ids=str)
def test_labels_out_of_range_have_one_message(backend: Backend, loss: Any, labels: list[int]) -> None:
    """In the words of the loss, also where the engine or another operation finds them, alone and in a gradient."""
    x = ops.ones((3, 3))
    wrong = min(labels) if min(labels) < 0 else max(labels)
    expected = rf"(?m)^(sparse_categorical|linear)_crossentropy: y_true must be from 0 to 2, got {wrong}$"
    with pytest.raises(IndexError, match=expected):
        loss(labels, x)
    with pytest.raises(IndexError, match=expected):
        ember_ml.value_and_grad(lambda x: loss(ops.asarray(labels), x))(x)


@pytest.mark.parametrize(("labels", "kind"), [([[0, 0, 1]], ValueError), ([[0.0, 0.0, 1.0]], TypeError)])
def test_one_hot_targets_have_a_loss_of_their_own(backend: Backend, labels: Any, kind: type[Exception]) -> None:
    for from_logits in (False, True):
        with pytest.raises(kind, match="; for one-hot targets or probabilities, use categorical_crossentropy"):
            ops.sparse_categorical_crossentropy(labels, ops.ones((1, 3)), from_logits=from_logits)


def test_labels_out_of_range_along_another_axis(backend: Backend) -> None:
    logits = ops.ones((2, 3, 4, 5))
    for axis, shape in ((0, (3, 4, 5)), (1, (2, 4, 5)), (2, (2, 3, 5))):
        labels = ops.index_update(ops.zeros(shape, dtype="int64"), (0, 1, 2), -1)
        with pytest.raises(IndexError, match=f"y_true must be from 0 to {logits.shape[axis] - 1}, got -1"):
            ops.sparse_categorical_crossentropy(labels, logits, axis=axis, from_logits=True)
        with pytest.raises(ValueError, match=f"the shape of y_pred without axis {axis}, got"):
            ops.sparse_categorical_crossentropy(labels[0], logits, axis=axis, from_logits=True)


# Those of PyTorch do not divide probabilities by their sum, and so have another gradient.
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("categorical", "sparse")])
def test_gradients_are_those_of_pytorch(name: str) -> None:
    loss, oracle, given = CASES[name]

    def gradient(function: Any) -> torch.Tensor:
        first, second, *others = map(tensor, given)
        second.requires_grad_()
        function(first, second, *others).backward()
        return second.grad

    with ember_ml.use_backend("torch"):
        mine = gradient(lambda *args: loss(*args, reduction="mean"))
    torch.testing.assert_close(mine, gradient(lambda *args: oracle(*args, "mean")), rtol=1e-7, atol=1e-9)


def test_gradients_are_finite_where_losses_are_extreme() -> None:
    with ember_ml.use_backend("torch"):
        z = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
        y = torch.tensor([[0.0, 1.0, 0.0]])
        total = ops.binary_crossentropy(y, z, from_logits=True) + ops.categorical_crossentropy(y, z, from_logits=True)
        total = total + ops.focal_loss(y, z, from_logits=True) + ops.log_cosh_loss(y, z) + ops.huber_loss(y, z)
        total = total + ops.cosine_similarity_loss(y, z * 0) + ops.triplet_loss(z, z, z)
        total.backward()
        assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "operation", [o for o in REGISTRY.values() if o.category == "losses"], ids=lambda operation: operation.name
)
def test_a_batch_of_nothing(operation: Operation, reduction: str, backend: Backend) -> None:
    """The mean of no losses is NaN, their sum 0; the gradient is as empty as the batch."""
    sample = calls(operation)[0].args
    # Weights are of no batch.
    names = [p.name for p in operation.parameters]
    kept = [name in ("weight", "bias") for name in names[: len(sample)]]
    args = [ops.asarray(array if keep else array[:0]) for array, keep in zip(sample, kept, strict=True)]

    def loss(y_pred: Any) -> Any:
        return operation.call(args[0], y_pred, *args[2:], reduction=reduction)

    result = on_host(loss(args[1]))
    if reduction == "none":
        some = on_host(operation.call(*map(ops.asarray, sample), reduction="none"))
        assert result.shape == (0, *some.shape[1:])
    else:
        np.testing.assert_array_equal(result, {"mean": np.float32("nan"), "sum": np.float32(0)}[reduction], strict=True)
    gradient = on_host(transform.grad(lambda x: ops.sum(loss(x)))(args[1]))
    assert gradient.shape == tuple(args[1].shape)
    assert gradient.dtype == np.float32


def test_a_batch_of_nothing_in_compiled_code(backend: Backend) -> None:
    none = ops.zeros((0,), dtype="int64")
    loss = transform.compile(lambda x: ops.ctc_loss(ops.zeros((0, 2), dtype="int64"), x, none, none))
    assert np.isnan(on_host(loss(ops.zeros((0, 3, 4)))))


def test_no_classes_cost_nothing(backend: Backend) -> None:
    nothing = ops.zeros((2, 0))
    for smoothing in (0.0, 0.5):
        losses = ops.categorical_crossentropy(nothing, nothing, label_smoothing=smoothing, reduction="none")
        assert losses.tolist() == [0.0, 0.0]
