"""``nn.Precision`` and ``nn.LossScale``, by hand and in a ``Trainer``."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops, optim, training, transform
from ember_ml.backend import Backend

# Rounding to bfloat16 changes a number by at most this share of it.
ROUNDING = 2.0**-8

# Share of the loss by which one curve in "bf16-mixed" may differ from another, or from that of float32, over the first
# twenty steps: engines add the products of a matrix product in different orders, so that roundings differ, and each
# step repeats and amplifies the differences. Measured: 0.3 %.
CURVE = 0.02


def dtypes(tensors: Any) -> set[str]:
    return {ops.dtype(x).name for x in tensors.values()}


class Tokens(nn.Module):
    """A transformer with tied embeddings, sines and cosines, and normalizations."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(16, 16)
        self.places = nn.PositionalEncoding(16, 8)
        self.stack = nn.TransformerEncoder(1, 16, 2, 32, dropout=0.0, norm_first=True)

    def forward(self, tokens: Any) -> Any:
        return self.embedding.attend(self.stack(self.places(self.embedding(tokens)), is_causal=True))


def tokens() -> tuple[np.ndarray, np.ndarray]:
    rows = (np.arange(9) * np.array([[1], [3], [5], [7]]) + np.arange(4)[:, None]) % 16
    return rows[:, :-1], rows[:, 1:]


def initial_weights() -> dict[str, np.ndarray]:
    with ember_ml.use_backend("numpy"):
        ops.random.set_seed(0)
        return {path: np.asarray(x) for path, x in Tokens().state_dict().items()}


def trained(compile: bool = False, steps: int = 20, **options: Any) -> tuple[Any, Any]:
    model = Tokens()
    model.load_state_dict(initial_weights())
    loss = lambda prediction, target: ops.sparse_categorical_crossentropy(target, prediction, from_logits=True)  # noqa: E731
    trainer = training.Trainer(model, loss, optim.AdamW(3e-3), compile=compile, **options)
    return trainer, trainer.fit(*tokens(), epochs=steps, batch_size=4, shuffle=False, verbose=0)


@pytest.fixture(scope="module")
def float32_curve() -> list[float]:
    with ember_ml.use_backend("numpy"):
        return trained()[1].steps


class TestPolicy:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("fp32", ("float32", "float32", "float32")),
            ("bf16-mixed", ("float32", "bfloat16", "float32")),
            ("fp16-mixed", ("float32", "float16", "float32")),
            ("bf16", ("bfloat16", "bfloat16", "bfloat16")),
        ],
    )
    def test_names(self, name: str, expected: tuple[str, ...]) -> None:
        precision = nn.Precision(name)
        assert (precision.parameter, precision.compute, precision.output) == expected
        assert precision == nn.Precision(parameter=expected[0], compute=expected[1], output=expected[2])
        assert hash(precision) == hash(nn.Precision(name))

    def test_a_dtype_in_place_of_that_of_a_name(self) -> None:
        assert nn.Precision("bf16-mixed", output="bfloat16").output == "bfloat16"
        assert nn.Precision("bf16-mixed") != nn.Precision("bf16-mixed", output="bfloat16")

    def test_mistakes(self) -> None:
        with pytest.raises(ValueError, match=r"Precision: name must be one of .*, got 'bf16_mixed'; did you mean"):
            nn.Precision("bf16_mixed")
        with pytest.raises(TypeError, match="Precision: compute must be a real floating dtype, got 'int32'"):
            nn.Precision(compute="int32")
        with pytest.raises(TypeError, match=r"Trainer: precision must be an nn\.Precision or its name, got"):
            training.Trainer(nn.Linear(1, 1), "mse", "sgd", precision=16)  # type: ignore[arg-type]


class TestApply:
    def test_what_a_model_computes_in(self, backend: Backend) -> None:
        found: dict[str, Any] = {}

        class Model(nn.Module):
            def __init__(self) -> None:
                self.weight, self.frozen = nn.Parameter([1.0]), nn.Parameter([1.0], trainable=False)
                self.table, self.statistics = nn.Buffer([1.0], persistent=False), nn.Buffer([1.0])
                self.counter = nn.Buffer(0, persistent=False)

            def forward(self, x: Any, other: Any) -> Any:
                found.update(self.tensors(), x=x, other=other["y"], numbers=other["numbers"])
                return x, [other["numbers"]]

        model = Model()
        before = model.tensors()
        other = {"y": ops.ones(2), "numbers": ops.arange(2)}
        result, (numbers,) = nn.Precision("bf16-mixed").apply(model, ops.ones(2), other=other)
        assert {name: ops.dtype(x).name for name, x in found.items()} == {
            "weight": "bfloat16",
            "frozen": "bfloat16",
            "table": "bfloat16",
            "statistics": "float32",
            "counter": "int64",
            "x": "bfloat16",
            "other": "bfloat16",
            "numbers": "int64",
        }
        assert (ops.dtype(result).name, ops.dtype(numbers).name) == ("float32", "int64")
        assert all(model.tensors()[path] is x for path, x in before.items())

    def test_a_model_that_fails_has_its_parameters_again(self, backend: Backend) -> None:
        model = nn.Linear(2, 3)
        weight = model.weight
        with pytest.raises(ValueError, match="Linear"):
            nn.Precision("bf16-mixed").apply(model, ops.ones((1, 5)))
        assert model.weight is weight

    def test_what_a_call_assigns_is_kept(self, backend: Backend) -> None:
        class Model(nn.Module):
            def __init__(self) -> None:
                self.weight = nn.Parameter([1.0])

            def forward(self, x: Any) -> Any:
                self.weight = ops.multiply(self.weight, 2.0)
                return x

        model = Model()
        nn.Precision("bf16-mixed").apply(model, ops.ones(1))
        assert (model.weight.tolist(), ops.dtype(model.weight).name) == ([2.0], "float32")

    def test_a_function(self, backend: Backend) -> None:
        found = nn.Precision("bf16-mixed").apply(lambda x: ops.multiply(x, 1.0), ops.asarray([1.001]))
        assert (found.tolist(), ops.dtype(found).name) == ([1.0], "float32")

    def test_gradients_are_those_of_casts(self, backend: Backend) -> None:
        """With respect to float32 parameters, as if each were cast by hand."""
        model, precision = nn.Linear(3, 2), nn.Precision("bf16-mixed")
        x = ops.asarray(np.random.default_rng(0).standard_normal((4, 3)), dtype="float32")

        def by_hand(weight: Any, bias: Any) -> Any:
            half = [ops.cast(t, "bfloat16") for t in (x, weight, bias)]
            return ops.sum(ops.square(ops.cast(ops.linear(*half), "float32")))

        expected = transform.grad(by_hand, (0, 1))(model.weight, model.bias)
        gradient = transform.grad(lambda model: ops.sum(ops.square(precision.apply(model, x))))
        for f in (gradient, transform.compile(gradient)):
            found = f(model)
            assert dtypes(found) == {"float32"}
            for path, wanted in zip(("weight", "bias"), expected, strict=True):
                # A compiler may keep more digits than bfloat16 has.
                np.testing.assert_allclose(
                    ops.to_numpy(found[path]), ops.to_numpy(wanted), rtol=4 * ROUNDING, atol=4 * ROUNDING
                )

    def test_gradients_of_gradients_and_slices(self, backend: Backend) -> None:
        precision, model = nn.Precision("bf16-mixed"), nn.Linear(2, 1, weight_init=0.5)

        def cubed(model: Any, x: Any) -> Any:
            return ops.sum(ops.power(precision.apply(model, x), 3))

        def length(model: Any, x: Any) -> Any:
            grads = transform.grad(cubed)(model, x)
            return ops.sum(ops.square(grads["bias"]))

        x = ops.ones((1, 2))
        # y == 1, d(y ** 3)/db == 3 y ** 2, and the derivative of its square by b is 36 y ** 3.
        assert transform.grad(length)(model, x)["bias"].tolist() == [36.0]
        rows = ops.asarray([[1.0, 1.0], [2.0, 2.0]])
        assert transform.vmap(lambda x: precision.apply(model, x))(rows).tolist() == [[1.0], [2.0]]
        _, tangent = transform.jvp(lambda x: precision.apply(model, x), (rows,), (rows,))
        assert tangent.tolist() == [[1.0], [2.0]]

    def test_tied_parameters_are_cast_once(self, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[1].weight = nn.Tied(model[0], "weight")
        kind = ember_ml.extend.backend_of(model[0].weight)
        seen: list[int] = []
        cast_all = kind.cast_all
        monkeypatch.setattr(kind, "cast_all", lambda xs, dtype: (seen.append(len(xs)), cast_all(xs, dtype))[1])
        nn.Precision("bf16-mixed").apply(model, ops.ones((1, 2)))
        assert seen == [3]

    def test_nothing_is_cast_that_has_the_dtype(self, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        model = nn.Linear(2, 1)
        kind = ember_ml.extend.backend_of(model.weight)
        monkeypatch.setattr(kind, "cast_all", None)
        assert tuple(nn.Precision("fp32").apply(model, ops.ones((1, 2))).shape) == (1, 1)

    @pytest.mark.parametrize("affine", [True, False])
    @pytest.mark.parametrize("is_training", [True, False])
    def test_running_statistics_do_not_change_the_dtype(
        self, backend: Backend, is_training: bool, affine: bool
    ) -> None:
        layer = nn.BatchNorm(2, affine=affine).train(is_training)
        found: list[str] = []
        model = nn.Sequential(layer, nn.Lambda(lambda x: (found.append(ops.dtype(x).name), x)[1]))
        nn.Precision("bf16-mixed").apply(model, ops.asarray([[1.0, 2.0], [3.0, 5.0]]))
        assert found == ["bfloat16"]
        assert dtypes(layer.buffers()) == {"float32"}


@pytest.mark.skipif("torch" not in ember_ml.get_available_backends(), reason="for torch, which is not installed")
def test_torch_casts_all_parameters_in_one_call() -> None:
    """One operation for all parameters, and one for all gradients, however many there are."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Casts(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.names: list[str] = []

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.names.append(function.name())
            return function(*args, **(kwargs or {}))

    with ember_ml.use_backend("torch"):
        model, precision = nn.Sequential(*(nn.Linear(4, 4) for _ in range(5))), nn.Precision("bf16-mixed")
        x = torch.ones(2, 4, dtype=torch.bfloat16, device=model[0].weight.device)
        with Casts() as casts:
            transform.grad(lambda model: ops.sum(precision.apply(model, x)))(model)
    assert casts.names.count("aten::_foreach_copy_") == 2
    # The output, and its gradient.
    assert casts.names.count("aten::_to_copy") == 2


CASES = {
    "layer_normalization": lambda x: ops.layer_normalization(x),
    "rms_normalization": lambda x: ops.rms_normalization(x),
    "group_normalization": lambda x: ops.group_normalization(x, 4),
    "softmax": lambda x: ops.softmax(x),
    "logsumexp": lambda x: ops.logsumexp(x, axis=-1),
    "mean": lambda x: ops.mean(x, axis=-1),
    "var": lambda x: ops.var(x, axis=-1),
    "std": lambda x: ops.std(x, axis=-1),
    "sum": lambda x: ops.sum(ops.multiply(x, 0.125), axis=-1),
    "categorical": lambda x: ops.categorical_crossentropy(ops.softmax(ops.zeros_like(x)), x, from_logits=True),
    "sparse": lambda x: ops.sparse_categorical_crossentropy(ops.arange(3), x, from_logits=True),
    "mse": lambda x: ops.mse(ops.zeros_like(x), ops.multiply(x, 0.125)),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("case", CASES)
def test_half_precision_is_rounded_once(case: str, dtype: str, backend: Backend) -> None:
    """Sums of 4,096 numbers are those of float32, rounded: half precision would lose most of their digits."""
    rows = np.random.default_rng(0).standard_normal((3, 4096)) * 3 + 20
    half = ops.cast(ops.asarray(rows, dtype="float32"), dtype)
    found, wanted = CASES[case](half), CASES[case](ops.cast(half, "float32"))
    assert ops.dtype(found).name == dtype
    rounding = {"bfloat16": ROUNDING, "float16": 2.0**-11}[dtype]
    if (case, backend.name) == ("sparse", "torch"):
        # torch's own kernel rounds the log-probabilities as well.
        rounding *= 2
    found, wanted = ops.to_numpy(ops.cast(found, "float32")), ops.to_numpy(wanted)
    # Numbers near zero in normalized rows are differences of larger ones.
    assert (np.abs(found - wanted) <= rounding * np.maximum(np.abs(wanted), 0.1)).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_attention_in_half_precision(dtype: str, backend: Backend) -> None:
    """Engines round the scores or the weights of their own kernels once more."""
    drawn = np.random.default_rng(0).standard_normal((3, 2, 300, 4, 16))
    half = [ops.cast(ops.asarray(x, dtype="float32"), dtype) for x in drawn]
    found = ops.dot_product_attention(*half, is_causal=True)
    wanted = ops.to_numpy(ops.dot_product_attention(*(ops.cast(x, "float32") for x in half), is_causal=True))
    assert ops.dtype(found).name == dtype
    error = np.abs(ops.to_numpy(ops.cast(found, "float32")) - wanted).max()
    assert error <= 4 * {"bfloat16": ROUNDING, "float16": 2.0**-11}[dtype] * np.abs(wanted).max()


class TestCurve:
    @pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
    def test_one_curve_on_every_engine(self, backend: Backend, compile: bool, float32_curve: list[float]) -> None:
        trainer, history = trained(compile, precision="bf16-mixed")
        assert float32_curve[-1] < float32_curve[0] / 2
        np.testing.assert_allclose(history.steps, float32_curve, rtol=CURVE)
        assert dtypes(trainer.model.parameters()) == {"float32"}
        assert dtypes({k: v for k, v in trainer.optimizer.tensors().items() if k != "step"}) == {"float32"}
        # It does compute in bfloat16.
        assert history.steps[0] != pytest.approx(float32_curve[0], rel=1e-6)

    def test_parameters_in_bfloat16(self, backend: Backend, float32_curve: list[float]) -> None:
        trainer, history = trained(precision="bf16")
        assert dtypes(trainer.model.parameters()) == {"bfloat16"}
        np.testing.assert_allclose(history.steps, float32_curve, rtol=0.15)

    def test_float16_is_near_float32_but_for_skipped_steps(self, backend: Backend, float32_curve: list[float]) -> None:
        trainer, history = trained(precision="fp16-mixed")
        skipped = trainer.loss_scale.skipped
        assert history["skipped_steps"][-1] == skipped
        assert trainer.optimizer.step == 20 - skipped
        # A skipped step repeats the loss.
        kept = [b for a, b in zip([math.nan, *history.steps], history.steps, strict=False) if a != b]
        np.testing.assert_allclose(kept, float32_curve[: len(kept)], rtol=CURVE)

    def test_evaluation_and_prediction_compute_in_the_same_precision(self, backend: Backend) -> None:
        trainer, _ = trained(steps=1, precision="bf16-mixed")
        x, _ = tokens()
        found = trainer.predict(x)
        assert ops.dtype(found).name == "float32"
        expected = nn.Precision("bf16-mixed").apply(trainer.model.eval(), ops.asarray(x))
        assert found.tolist() == expected.tolist()


class Spike(nn.Module):
    """A model whose input may be beyond the range of float16, so that its statistics are not finite either."""

    def __init__(self) -> None:
        self.linear = nn.Linear(1, 4, weight_init=0.5)
        self.norm = nn.BatchNorm(4)
        self.out = nn.Linear(4, 1, weight_init=0.5)

    def forward(self, x: Any) -> Any:
        return self.out(self.norm(self.linear(x)))


def stop_after(steps: int) -> Any:
    def stop(trainer: Any, loss: Any) -> None:
        if trainer.step == steps:
            raise RuntimeError("stopped")

    return stop


@pytest.mark.usefixtures("traced_only")
class TestOverflow:
    X = np.array([[0.5], [1.0], [1.5], [2.0]] * 3, np.float32)
    Y = np.array([[0.5], [1.0], [1.5], [2.0]] * 3, np.float32)

    def trainer(self, **options: Any) -> Any:
        ops.random.set_seed(0)
        trainer = training.Trainer(Spike(), "mse", optim.Adam(1e-2), precision="fp16-mixed", **options)
        trainer.loss_scale = nn.LossScale(256.0, interval=4)
        return trainer

    @pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
    def test_a_planted_overflow_skips_its_step(self, backend: Backend, compile: bool) -> None:
        x = self.X.copy()
        x[4] = 1e5
        trainer = self.trainer(compile=compile)
        seen: list[Any] = []

        class Watch(training.Callback):
            def on_step_end(self, trainer: Any, loss: Any) -> None:
                tensors = {**trainer.model.tensors(), **trainer.optimizer.tensors()}
                seen.append({path: ops.to_numpy(value).copy() for path, value in tensors.items()})

        trainer.callbacks.append(Watch())
        history = trainer.fit(x, self.Y, epochs=2, batch_size=4, shuffle=False, verbose=0)
        first, second, third = seen[:3]
        assert all(np.array_equal(first[path], second[path]) for path in first)
        assert not np.array_equal(second["linear.weight"], third["linear.weight"])
        assert all(np.isfinite(value).all() for value in seen[-1].values())
        assert history["skipped_steps"] == [1, 2]
        assert history["loss_scale"] == [128.0, 64.0]
        assert (trainer.step, trainer.optimizer.step) == (6, 4)
        # The loss of a skipped step does not count.
        assert all(map(math.isfinite, history["loss"]))
        assert history["loss"][0] == pytest.approx((history.steps[0] + history.steps[2]) / 2)

    def test_the_scale_grows_again(self, backend: Backend) -> None:
        trainer = self.trainer()
        history = trainer.fit(self.X, self.Y, epochs=3, batch_size=4, shuffle=False, verbose=0)
        # Nine steps, and it is doubled after every fourth.
        assert history["loss_scale"] == [256.0, 512.0, 1024.0]

    def test_as_the_scaler_of_torch(self) -> None:
        """The scale after each of a sequence of steps, some of which overflow."""
        torch = pytest.importorskip("torch")
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
        weight = torch.nn.Parameter(torch.ones(1))
        theirs = torch.optim.SGD([weight], lr=0.1)
        with ember_ml.use_backend("torch"):
            model, ours, scale = (
                nn.Linear(1, 1, bias=False, weight_init=1.0).to("cpu"),
                optim.SGD(0.1),
                nn.LossScale(2.0**10, interval=3),
            )
            for factor in (1.0, 1.0, math.inf, 1.0, 1.0, 1.0, math.inf, math.nan, 1.0):
                theirs.zero_grad()
                scaler.scale((weight * factor).sum()).backward()
                scaler.step(theirs)
                scaler.update()
                grads = transform.grad(lambda m, f=factor: scale.multiply(ops.sum(m.weight * f)))(model)
                scale.update(model, ours, grads)
                assert scale.value == scaler.get_scale()
                assert model.weight.item() == pytest.approx(weight.item())
        assert scale.skipped == 3

    def test_mistakes(self) -> None:
        with pytest.raises(ValueError, match="LossScale: initial must be > 0, got 0"):
            nn.LossScale(0)
        with pytest.raises(ValueError, match="LossScale: interval must be >= 1, got 0"):
            nn.LossScale(interval=0)

    @pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
    def test_a_run_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(
        self, backend: Backend, tmp_path: Path, compile: bool
    ) -> None:
        x = self.X.copy()
        x[4] = 1e5
        options: dict[str, Any] = {"batch_size": 4, "verbose": 0}
        whole = self.trainer(compile=compile)
        expected = whole.fit(x, self.Y, epochs=3, **options)
        first = self.trainer(compile=compile)
        # In the middle of the second epoch, before the step that overflows.
        first.callbacks.append(training.LambdaCallback(on_step_end=stop_after(4)))
        with pytest.raises(RuntimeError, match="stopped"):
            first.fit(x, self.Y, epochs=3, **options)
        first.save(tmp_path)
        # The checkpoint holds the weights in float32.
        assert dtypes(ops.load_checkpoint(tmp_path)["model"]) == {"float32"}
        second = self.trainer(compile=compile)
        second.loss_scale = nn.LossScale(8.0, interval=4)
        found = second.fit(x, self.Y, epochs=3, resume=tmp_path, **options)
        np.testing.assert_array_equal(found.steps, expected.steps)
        assert found["loss_scale"][-1] == expected["loss_scale"][-1]
        assert found["skipped_steps"][-1] == expected["skipped_steps"][-1] > 0


def test_a_precision_is_copied_with_its_owner() -> None:
    assert copy.deepcopy(nn.Precision("bf16-mixed")) == nn.Precision("bf16-mixed")
