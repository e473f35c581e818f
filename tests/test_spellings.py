"""Spellings of NumPy, torch and Keras: each is accepted and means the same, or the error says what to write."""

from __future__ import annotations

import copy
import doctest
import inspect
import pickle
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from operator import attrgetter
from types import ModuleType
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops, optim, reference, spellings, training
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, fast, operation_of
from ember_ml.nn import features, initializers, wirings
from ember_ml.ops import aliases
from ember_ml.optim import schedules

ROOTS: dict[str, Any] = {
    "ember_ml": ember_ml,
    "nn": nn,
    "ops": ops,
    "optim": optim,
    "training": training,
    "initializers": initializers,
    "schedules": schedules,
}

# Calls as they are written elsewhere, and the same in our own words. ``x`` is [[1, 2, 3], [4, 5, 6]].
ALIASES = {
    "ops.cat([x, x], axis=1)": "ops.concat([x, x], axis=1)",
    "ops.unsqueeze(x, 0)": "ops.expand_dims(x, 0)",
    "ops.permute(x, (1, 0))": "ops.permute_dims(x, (1, 0))",
    "ops.movedim(x, 0, 1)": "ops.moveaxis(x, 0, 1)",
    "ops.swapdims(x, 0, 1)": "ops.swapaxes(x, 0, 1)",
    "ops.clamp(x, 2, 4)": "ops.clip(x, 2, 4)",
    "ops.clamp(x, min=2)": "ops.clip(x, min=2)",
    "ops.topk(x, 2)[0]": "ops.top_k(x, 2)[0]",
    "ops.tensor([1.0, 2.0])": "ops.asarray([1.0, 2.0])",
    "ops.as_tensor([1.0], dtype='float64')": "ops.asarray([1.0], dtype='float64')",
    "ops.convert_to_numpy(x)": "ops.to_numpy(x)",
    "ops.unbind(x)[1]": "ops.unstack(x)[1]",
    "ops.tensor_split(x, 2)[0]": "ops.array_split(x, 2)[0]",
    "ops.chunk(x, 2)[1]": "ops.split(x, 2)[1]",
    "ops.repeat_interleave(x, 2)": "ops.repeat(x, 2)",
    "ops.mul(x, x)": "ops.multiply(x, x)",
    "ops.sub(x, 1)": "ops.subtract(x, 1)",
    "ops.div(x, 2)": "ops.divide(x, 2)",
    "ops.neg(x)": "ops.negative(x)",
    "ops.eq(x, 2)": "ops.equal(x, 2)",
    "ops.ge(x, 2)": "ops.greater_equal(x, 2)",
    "ops.mm(x, ops.t_of_x)": "ops.matmul(x, ops.t_of_x)",
    "ops.clone(x)": "ops.copy(x)",
    "ops.detach(x)": "ops.stop_gradient(x)",
    "ops.numel(x)": "6",
    "ops.fix(x)": "ops.trunc(x)",
    "ops.hardtanh(x)": "ops.hard_tanh(x)",
    "ops.logsigmoid(x)": "ops.log_sigmoid(x)",
    "ops.mse_loss(x, ops.zeros_like(x))": "ops.mean_squared_error(ops.zeros_like(x), x)",
    "ops.row_stack([x, x])": "ops.vstack([x, x])",
    "ops.degrees(x)": "ops.rad2deg(x)",
    "ops.around(x, 1)": "ops.round(x, 1)",
    "ops.get_item(x, (0, 1))": "ops.index_get(x, (0, 1))",
}

# Layers, optimizers and the like: what is written elsewhere, and the same in our own words, by their repr.
ACCEPTED = {
    "nn.Conv2d(3, 8, 3, stride=2, padding=1)": "nn.Conv2d(3, 8, 3, strides=2, padding=1)",
    "nn.Conv2d(3, 8, kernel_size=3, dilation=2)": "nn.Conv2d(3, 8, 3, dilation_rate=2)",
    "nn.Conv2d(3, filters=8, kernel_size=3)": "nn.Conv2d(3, 8, 3)",
    "nn.Conv2d(3, 8, 3, use_bias=False)": "nn.Conv2d(3, 8, 3, bias=False)",
    "nn.ConvTranspose2d(3, 8, 3, stride=2)": "nn.ConvTranspose2d(3, 8, 3, strides=2)",
    "nn.MaxPool2d(kernel_size=2, stride=1)": "nn.MaxPool2d(2, 1)",
    "nn.MaxPooling2D(pool_size=2)": "nn.MaxPool2d(2)",
    "nn.AveragePooling2D(2)": "nn.AveragePool2d(2)",
    "nn.GlobalAveragePooling2D()": "nn.GlobalAveragePool()",
    "nn.GlobalMaxPool(keepdim=True)": "nn.GlobalMaxPool(keepdims=True)",
    "nn.Dropout(p=0.25)": "nn.Dropout(0.25)",
    "nn.BatchNorm(4, eps=1e-3)": "nn.BatchNorm(4, epsilon=1e-3)",
    "nn.LayerNorm(4, eps=1e-3, elementwise_affine=False)": "nn.LayerNorm(4, epsilon=1e-3, affine=False)",
    "nn.GroupNorm(groups=2, num_channels=4)": "nn.GroupNorm(2, 4)",
    "nn.Linear(2, units=3)": "nn.Linear(2, 3)",
    "nn.Dense(2, units=3, use_bias=False)": "nn.Linear(2, 3, bias=False)",
    "nn.Linear(2, 3, kernel_initializer='he_normal')": "nn.Linear(2, 3, weight_init='he_normal')",
    "nn.Embedding(input_dim=10, output_dim=4)": "nn.Embedding(10, 4)",
    "nn.LSTM(2, units=3)": "nn.LSTM(2, 3)",
    "nn.RNN(2, 3, nonlinearity='relu')": "nn.RNN(2, 3, activation='relu')",
    "nn.MultiHeadAttention(8, nhead=2)": "nn.MultiHeadAttention(8, 2)",
    "nn.MultiHeadAttention(d_model=8, num_heads=2)": "nn.MultiHeadAttention(8, 2)",
    "nn.TransformerEncoderLayer(d_model=8, nhead=2)": "nn.TransformerEncoderLayer(8, 2)",
    "nn.TransformerEncoder(1, 8, nhead=2, layer_norm_eps=1e-3)": "nn.TransformerEncoder(1, 8, 2, epsilon=1e-3)",
    "nn.Flatten(start_dim=2)": "nn.Flatten(2)",
    "nn.Upsample(scale_factor=3, mode='bilinear')": "nn.Upsample(3, 'bilinear')",
    "nn.Reshape(target_shape=(2, 3))": "nn.Reshape((2, 3))",
    "nn.Softmax(dim=1)": "nn.Softmax(axis=1)",
    "nn.LeakyReLU(alpha=0.2)": "nn.LeakyReLU(0.2)",
    "nn.Softshrink(lambd=0.2)": "nn.SoftShrink(0.2)",
    "nn.Hardtanh()": "nn.HardTanh()",
    "nn.Hardswish()": "nn.HardSwish()",
    "optim.SGD(lr=0.1, momentum=0.9)": "optim.SGD(0.1, 0.9)",
    "optim.Adam(lr=0.1, betas=(0.8, 0.9))": "optim.Adam(0.1, 0.8, 0.9)",
    "optim.Adam(epsilon=1e-7)": "optim.Adam(eps=1e-7)",
    "optim.Adam(b1=0.8, b2=0.9)": "optim.Adam(beta_1=0.8, beta_2=0.9)",
    "optim.AdamW(lr=0.1, clipvalue=1.0)": "optim.AdamW(0.1, clip_value=1.0)",
    "optim.Adam(global_clipnorm=1.0)": "optim.Adam(clip_norm=1.0)",
    "optim.RMSprop(alpha=0.9)": "optim.RMSprop(rho=0.9)",
    "optim.Adagrad(lr_decay=0.1)": "optim.Adagrad(rate_decay=0.1)",
    "optim.Adagrad(initial_accumulator_value=0.1)": "optim.Adagrad(initial_accumulator=0.1)",
    "optim.Adafactor(eps=(None, 0.01), d=2.0)": "optim.Adafactor(eps_2=0.01, clip_threshold=2.0)",
    "optim.Muon(ns_steps=3, adjust_lr_fn='none')": "optim.Muon(steps=3, adjust='none')",
    "optim.get_optimizer('adam')": "optim.Adam()",
    "optim.get_optimizer('RMSprop')": "optim.RMSprop()",
    "schedules.cosine(initial_learning_rate=0.1, decay_steps=10)": "schedules.cosine(0.1, 10)",
    "schedules.cosine(0.1, 10, eta_min=0.01)": "schedules.cosine(0.1, 10, end=0.01)",
    "schedules.one_cycle(max_lr=0.1, total_steps=20, pct_start=0.5)": "schedules.one_cycle(0.1, 20, 0.5)",
    "training.Precision(num_classes=3, average='macro')": "training.Precision('macro', 3)",
    "training.metrics.get_metric('acc')": "training.Accuracy()",
    "training.metrics.get_metric('mean_squared_error')": "training.MeanSquaredError()",
    "training.metrics.get_metric('f1_score')": "training.F1()",
    "initializers.get_initializer('xavier_uniform')": "initializers.glorot_uniform",
    "initializers.get_initializer('kaiming_normal')": "initializers.he_normal",
    "initializers.normal((2,), key=1, std=0.5).tolist()": "initializers.normal((2,), key=1, stddev=0.5).tolist()",
    "initializers.uniform((2,), key=1, minval=0.0).tolist()": "initializers.uniform((2,), key=1, low=0.0).tolist()",
}

# What is refused, and what the message says to write: a parameter, or a name, which must exist.
REFUSED = {
    "ops.sum(x, dim=1)": "axis=",
    "ops.mean(x, dim=(0, 1))": "axis=",
    "ops.max(x, axis=0, keepdim=True)": "keepdims=",
    "ops.softmax(x, dim=-1)": "axis=",
    "ops.cat([x, x], dim=1)": "axis=",
    "ops.stack([x, x], dim=1)": "axis=",
    "ops.squeeze(x, dim=0)": "axis=",
    "ops.argmax(x, dim=0)": "axis=",
    "ops.flip(x, dims=(0,))": "axis=",
    "ops.permute(x, dims=(1, 0))": "axes=",
    "ops.tensordot(x, x, dims=2)": "axes=",
    "ops.roll(x, shifts=1)": "shift=",
    "ops.sum(input=x)": "x, which is given by position",
    "ops.concat(tensors=[x, x])": "arrays, which is given by position",
    "ops.var(x, unbiased=False)": "correction=",
    "ops.clip(x, a_min=0)": "min=",
    "ops.clip(x, a_max=2)": "max=",
    "ops.linspace(0, 1, steps=5)": "num=",
    "ops.arange(0, end=5)": "stop=",
    "ops.tril(x, diagonal=1)": "k=",
    "ops.zeros(size=(2, 2))": "shape=",
    "ops.full((2,), value=1.0)": "fill_value=",
    "ops.one_hot([1], depth=3)": "num_classes=",
    "ops.skew(x, nan_policy='omit')": "ops.nanmean",
    "ops.random_normal((2,), std=2.0)": "stddev=",
    "ops.random_uniform((2,), minval=2.0)": "low=",
    "ops.random_uniform((2,), seed=2)": "key=",
    "ops.random_normal((2,), generator=None)": "key=",
    "ops.soft_shrink(x, lambd=0.1)": "threshold=",
    "ops.max_pool(x, kernel_size=2)": "pool_size=",
    "ops.conv(x, x, stride=2)": "strides=",
    "ops.conv(x, x, dilation=2)": "dilation_rate=",
    "ops.layer_normalization(x, eps=1e-3)": "epsilon=",
    "ops.normalize(x, p=2)": "order=",
    "ops.norm(x, p=2)": "ord=",
    "ops.dot_product_attention(x, x, x, attn_mask=None)": "mask=",
    "ops.mean_squared_error(target=x, y_pred=x)": "y_true=",
    "ops.sum(x, keepdim=True)": "keepdims=",
    "ops.sum(x, kepdims=True)": "keepdims=",
    "ops.cross_entropy(x)": "ops.sparse_categorical_crossentropy",
    "ops.index_select(x)": "ops.take",
    "ops.randn(x)": "ops.random.normal, whose first argument is the shape",
    "ops.conv2d(x)": "ops.conv",
    "ops.scaled_dot_product_attention(x)": "ops.dot_product_attention",
    "ops.reduce_mean(x)": "ops.mean",
    "ops.long()": "ops.int64",
    "ops.embedding(x, x)": "ops.embedding_lookup",
    "ops.rand(2, 3)": "ops.random.uniform",
    "ops.randint(0, 3, (5,))": "ops.random.randint, whose arguments are (shape, low, high)",
    "ops.no_grad()": "ops.stop_gradient for a tensor, and nothing for a model",
    "ops.flatten(x, start_dim=1)": "nn.Flatten()",
    "ember_ml.no_grad": "stop_gradient for a tensor, and nothing for a model",
    "ops.layer_norm(x, 3)": "ops.layer_normalization",
    "ops.interpolate(x)": "ops.resize",
    "ember_ml.Tensor": "nn.tensor.EmberTensor",
    "ember_ml.cat": "ops.cat",
    "ember_ml.layers": "nn",
    "nn.BatchNorm2d": "nn.BatchNorm",
    "nn.BatchNormalization": "nn.BatchNorm",
    "nn.AvgPool2d": "nn.AveragePool2d",
    "nn.AdaptiveAvgPool2d": "nn.AdaptiveAveragePool",
    "nn.CrossEntropyLoss": "ops.sparse_categorical_crossentropy",
    "nn.MSELoss": "ops.mean_squared_error",
    "nn.MultiheadAttention": "nn.MultiHeadAttention",
    "nn.Conv2D": "nn.Conv2d",
    "nn.functional": "ops",
    "nn.linear": "nn.Linear",
    "nn.modules.LayerNormalization": "nn.LayerNorm",
    "nn.init": "nn.initializers",
    "nn.Linear(2, 3, bais=False)": "bias=",
    "nn.Linear(input_dim=2, out_features=3)": "in_features=",
    "nn.LSTM(2, 3, batch_frist=True)": "batch_first=",
    "nn.MultiHeadAttention(num_heads=2, key_dim=4)": "embed_dim=",
    "nn.BatchNorm(4, center=False)": "affine=",
    "nn.Dropout(probability=0.5)": "rate=",
    "nn.Dropout(drop_rate=0.5)": "rate=",
    "optim.adam": "optim.Adam",
    "optim.sgd": "optim.SGD",
    "optim.Adamw": "optim.AdamW",
    "optim.lr_scheduler": "optim.schedules",
    "optim.Adam(clipnorm=1.0)": "clip_norm=",
    "optim.SGD(0.1, weight_decy=0.1)": "weight_decay=",
    "schedules.StepLR": "optim.schedules.step",
    "schedules.CosineAnnealingLR": "optim.schedules.cosine",
    "schedules.step(0.1, step_size=3)": "every=, which counts optimizer steps: step_size * len(loader)",
    "schedules.exponential(0.1, gamma=0.9)": "factor=",
    "schedules.cosine(0.1, T_max=10)": "steps=, which counts optimizer steps: T_max * len(loader)",
    "training.ModelCheckpoint": "training.Checkpoint",
    "training.TerminateOnNaN": "training.FailOnNaN",
    "training.F1Score": "training.F1",
    "training.early_stopping": "training.EarlyStopping",
    "training.Checkpoint(filepath='x')": "directory=",
    "training.Checkpoint('x', save_top_k=3)": "keep=",
    "training.Precision(thresholds=0.5)": "threshold=",
    "training.metrics.get_metric('acurracy')": "'accuracy'",
    "training.Trainer(nn.Linear(1, 1), 'mse', 'adamm')": "'adam'",
    "training.Trainer(nn.Linear(1, 1), 'cross_entropy', 'adam')": "'sparse_categorical_crossentropy'",
    "training.Trainer(nn.Linear(1, 1), 'mse', 'adam', metric='mae')": "metrics=",
    "training.Trainer(nn.Linear(1, 1), 'mse', 'adam').fit([[1.0]], [[1.0]], nb_epoch=1)": "epochs=",
    "training.Trainer(nn.Linear(1, 1), 'mse', 'adam').fit([[1.0]], [[1.0]], val_data=1)": "validation_data=",
    "training.Trainer(nn.Linear(1, 1), 'mse', 'adam').fit([[1.0]], callbacks=[])": "Trainer(..., callbacks=)",
    "initializers.xavier_uniform_": "nn.initializers.glorot_uniform",
    "initializers.get_initializer('xavier')": "'glorot_uniform'",
    "nn.features.PCA(n_component=2)": "n_components=",
    "nn.wirings.AutoNCP(8, 2, sparsity=0.5)": "sparsity_level=",
}

# Operations on tensors alone, whose wrong arguments Python itself reports without the C extension.
PLAIN = {
    "ops.add(x, other=x)": "y, which is given by position",
    "ops.add(input=x, other=x)": "x, which is given by position",
    "ops.exp(input=x)": "x, which is given by position",
    "ops.matmul(x, mat2=x)": "x2, which is given by position",
}


def run(code: str) -> Any:
    x = ops.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return eval(code.replace("ops.t_of_x", "ops.transpose(x)"), {**ROOTS, "x": x})


def test_there_are_enough() -> None:
    assert len(ACCEPTED) >= 50
    assert len(REFUSED) >= 100


@pytest.mark.parametrize("code", ALIASES)
def test_names_of_other_libraries(code: str, backend: Backend) -> None:
    found, expected = run(code), run(ALIASES[code])
    assert type(found) is type(expected)
    assert bool(ops.all(ops.equal(found, expected)))


@pytest.mark.parametrize("code", ACCEPTED)
def test_spellings_that_are_accepted(code: str, backend: Backend) -> None:
    found, expected = run(code), run(ACCEPTED[code])
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("code", [*REFUSED, *PLAIN])
def test_spellings_that_are_refused(code: str, backend: Backend) -> None:
    if code in PLAIN and fast._c is None:
        pytest.skip("the C extension is not built, or EMBER_ML_PURE_PYTHON is set")
    with pytest.raises((TypeError, AttributeError, ValueError)) as caught:
        run(code)
    text = str(caught.value)
    assert f"did you mean {({**REFUSED, **PLAIN})[code]}" in text, text
    if isinstance(caught.value, TypeError):
        assert re.match(r"[\w.]+: unknown option '\w+'; did you mean ", text), text


def exists(path: str) -> bool:
    """Whether ``path`` is that of something below ``ember_ml``."""
    found: Any = ember_ml
    for name in path.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


def test_names_that_operations_do_not_have() -> None:
    for name, meant in aliases.ELSEWHERE.items():
        assert name not in ops.__all__
        assert exists(re.match(r"[\w.]+", meant)[0]), meant  # type: ignore[index]
        assert f"did you mean {meant}?" in repr(getattr(ops, name))
    # CPython 3.11 to 3.13 looks up attributes of such modules slowly.
    for module in (ops, ops.random, ops.linalg, nn.tensor):
        assert "__getattr__" not in vars(module)


def test_names_that_are_suggested_exist() -> None:
    for name, meant in spellings.NAMES.items():
        assert exists(re.match(r"[\w.]+", meant)[0]), meant  # type: ignore[index]
        if not name.startswith(("training.LearningRate", "training.ReduceLR")):
            assert not exists(name), name


def callables() -> dict[str, Callable[..., Any]]:
    """Everything that takes options: operations, and public classes and functions."""
    found: dict[str, Callable[..., Any]] = {operation.name: operation.function for operation in REGISTRY.values()}
    for space in (nn.modules, features, wirings, optim, training, initializers, schedules):
        public = {name: value for name, value in vars(space).items() if not name.startswith("_") and callable(value)}
        found |= {name: value for name, value in public.items() if value.__module__.startswith("ember_ml.")}
    return {**found, **{f"Trainer.{name}": getattr(training.Trainer, name) for name in ("fit", "evaluate", "predict")}}


def test_options_that_are_suggested_exist() -> None:
    options = {
        name: set(inspect.signature(value).parameters)
        for name, value in callables().items()
        if not (isinstance(value, type) and issubclass(value, Exception))
    }
    everything = set().union(*options.values())
    for name, entries in spellings.ACCEPTED.items():
        for entry in entries:
            owner, _, parts = entry.rpartition(".")
            known = options.get(owner, set()) if owner else everything
            if owner == "ReduceLROnPlateau" and owner not in options:
                continue
            assert set(parts.split("+")) <= known, (name, entry)
    for name, meant in spellings.MEANT.items():
        assert set(meant) <= everything, (name, set(meant) - everything)


def test_every_public_class_explains_its_options() -> None:
    checked = 0
    for name, value in callables().items():
        if isinstance(value, type) and hasattr(value.__init__, "__code__"):
            first = [
                object()
                for p in inspect.signature(value).parameters.values()
                if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
            ]
            if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(value).parameters.values()):
                continue
            with pytest.raises(TypeError, match=rf"^\w+: unknown option 'no_such_thing'; .*option|{name}"):
                value(*first, no_such_thing=1)
            checked += 1
    assert checked > 60


def test_signatures_and_copies_show_our_names(backend: Backend) -> None:
    assert "strides" in inspect.signature(nn.Conv2d).parameters
    assert "stride" not in inspect.signature(nn.Conv2d).parameters
    assert list(inspect.signature(optim.Adam).parameters)[:3] == ["learning_rate", "beta_1", "beta_2"]
    for one in (
        nn.Conv2d(1, 2, 3, stride=2),
        optim.Adam(lr=0.5, betas=(0.5, 0.6)),
        schedules.cosine(0.1, 5, eta_min=0.01),
    ):
        assert repr(pickle.loads(pickle.dumps(one))) == repr(copy.deepcopy(one)) == repr(one)
    assert pickle.loads(pickle.dumps(initializers.normal)) is initializers.normal


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("from ember_ml.nn import Linear, BatchNorm2d", "cannot import name 'BatchNorm2d' from 'ember_ml.nn'; did you"),
        (
            "from ember_ml.optim import adamw",
            "cannot import name 'adamw' from 'ember_ml.optim'; did you mean optim.AdamW",
        ),
        ("from ember_ml.training import ModelCheckpoint", "did you mean training.Checkpoint"),
        ("from ember_ml import layers", "did you mean nn"),
        ("from ember_ml.nn.modules import Conv2D", "did you mean nn.Conv2d"),
    ],
)
def test_imports_say_what_to_write(code: str, message: str) -> None:
    with pytest.raises(ImportError, match=re.escape(message)):
        exec(code, {})


def test_modules_are_imported_by_their_names() -> None:
    import ember_ml.optim.adam as module
    from ember_ml.optim import sgd

    assert (module.Adam, sgd.SGD) == (optim.Adam, optim.SGD)
    assert getattr(nn, "BatchNorm2d", None) is None


def test_both_spellings_at_once() -> None:
    with pytest.raises(TypeError, match=r"^Conv2d: strides must be given once, got it also as stride=2"):
        nn.Conv2d(1, 2, 3, stride=2, strides=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Conv2d: strides must be given once, got int by position and stride=2"):
        nn.Conv2d(1, 2, 3, 1, stride=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Softmax: axis must be given once"):
        nn.Softmax(1, dim=1)
    with pytest.raises(TypeError, match=r"^Adam: beta_1 must be given once"):
        optim.Adam(beta_1=0.9, betas=(0.8, 0.9))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Adam: betas must be a tuple \(beta_1, beta_2\), got 0.9"):
        optim.Adam(betas=0.9)  # type: ignore[call-arg]


def test_parameters_given_to_an_optimizer_as_in_torch() -> None:
    with pytest.raises(TypeError, match=r"^Adam: learning_rate must be given once, .*; pass the parameters to update$"):
        optim.Adam(nn.Linear(1, 2).parameters(), lr=0.1)  # type: ignore[arg-type, call-arg]


@pytest.mark.parametrize("make", [optim.Adam, lambda: optim.Grouped([(lambda path, p: True, optim.Adam())])])
def test_methods_of_optimizers_of_torch(make: Callable[[], Any]) -> None:
    optimizer = make()
    with pytest.raises(AttributeError, match=r"no attribute 'zero_grad'; leave it out: value_and_grad returns"):
        optimizer.zero_grad()
    with pytest.raises(AttributeError, match=r"no attribute 'state_dict'; did you mean optimizer.tensors\(\)"):
        optimizer.state_dict()
    with pytest.raises(AttributeError, match=r"no attribute 'load_state_dict'; did you mean optimizer.assign"):
        optimizer.load_state_dict({})
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_thing'$"):
        optimizer.no_such_thing  # noqa: B018
    assert repr(copy.deepcopy(optimizer)) == repr(optimizer)


def test_methods_of_modules_of_torch_and_keras() -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    for name, hint in spellings.OF_MODULES.items():
        with pytest.raises(AttributeError) as caught:
            getattr(model, name)
        assert str(caught.value) == f"'Sequential' object has no attribute {name!r}; {hint}"
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_thing'$"):
        model.no_such_thing  # noqa: B018
    assert not hasattr(model, "cuda")
    model.cuda = 3
    assert model.cuda == 3


def test_what_the_hints_name_is_there() -> None:
    """Attributes after "did you mean" are those of a module, or a path in ember_ml."""
    model = nn.Sequential(nn.Linear(3, 2))
    for hint in spellings.OF_MODULES.values():
        found = re.search(r"did you mean ([\w.]+)", hint)
        if found is None:
            assert not hint.startswith("did you mean")
            continue
        owner, _, path = found[1].partition(".")
        assert callable(attrgetter(path)({"model": model, "ember_ml": ember_ml, "training": training}[owner]))


def test_modules_and_optimizers_of_torch_given_to_a_trainer() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Linear(3, 2)
    with pytest.raises(TypeError, match=r"got a Linear, which is a torch.nn.Linear; convert it with nn.from_torch$"):
        training.Trainer(theirs, "mse", "adam")
    with pytest.raises(TypeError, match=r"got an Adam, which is a torch.optim.Adam; write an optimizer of ember_ml"):
        training.Trainer(nn.Linear(3, 2), "mse", torch.optim.Adam(theirs.parameters()))


def test_flattening_from_an_axis_as_in_torch() -> None:
    with pytest.raises(TypeError, match=r"^flatten\(\) too many positional arguments; for torch.flatten\(x, 1\), use"):
        ops.flatten([[1.0]], 1)  # type: ignore[call-arg]


def test_python_adds_no_suggestion_to_ours() -> None:
    with pytest.raises(AttributeError, match=r"did you mean optim.schedules\?") as caught:
        getattr(optim, "lr_schedule")  # noqa: B009
    lines = traceback.format_exception(caught.value)
    assert lines[-1].lower().count("did you mean") == 1


def test_every_draw_is_found_where_other_libraries_have_it() -> None:
    missing = {"uniform", "normal", "bernoulli", "randint", "permutation", "choice", "categorical", "poisson"}
    for name in missing:
        assert f"did you mean ops.random.{name}" in repr(getattr(ops, name))


def test_the_page_for_torch_has_names_of_torch() -> None:
    torch = pytest.importorskip("torch")
    names = re.findall(r"(?m)^\| `([\w.]+)`", reference.TABLES["torch_names"]())
    assert "nn.AvgPool2d" in names
    for name in names:
        assert attrgetter(name)(torch) is not None


def test_options_without_a_counterpart_say_what_there_is() -> None:
    with pytest.raises(TypeError, match=r"^sum: unknown option 'foo'; the options are axis, dtype, keepdims"):
        ops.sum([1.0], foo=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^ReLU: unknown option 'inplace'; leave it out"):
        nn.ReLU(inplace=True)
    with pytest.raises(TypeError, match=r"^LSTM: unknown option 'foo'; the options are input_size, .*dtype"):
        nn.LSTM(1, 2, foo=1)
    with pytest.raises(TypeError, match=r"^Mine: unknown option 'foo'"):
        type("Mine", (nn.Linear,), {})(1, 2, foo=1)


def test_a_class_of_the_user_keeps_its_own_options() -> None:
    class Layer(nn.Linear):
        def __init__(self, units: int, stride: int = 1, **options: Any) -> None:
            super().__init__(units, units, **options)
            self.stride = stride

    layer = Layer(2, stride=3, use_bias=False)
    assert (layer.out_features, layer.stride, layer.bias) == (2, 3, None)


def test_trainers_accept_names_and_spellings(backend: Backend) -> None:
    options = {"criterion": "mse", "optimizer": "adam", "metrics": ["mean_absolute_error"]}
    trainer = training.Trainer(nn.Linear(1, 1), **options)  # type: ignore[arg-type]
    history = trainer.fit([[0.0], [1.0]], [[1.0], [3.0]], num_epochs=2, verbose=0)  # type: ignore[call-arg]
    assert len(history.epochs) == 2
    assert "mae" in history.epochs[0]
    stopping = training.EarlyStopping(restore_best_weights=False, min_delta=0.5)  # type: ignore[call-arg]
    assert (stopping.restore_best, stopping.watch.least) == (False, 0.5)


@pytest.mark.parametrize(
    ("length", "chunks", "expected"),
    [(6, 4, [2, 2, 2]), (5, 3, [2, 2, 1]), (4, 2, [2, 2]), (3, 9, [1, 1, 1]), (7, 1, [7]), (0, 2, [0, 0])],
)
def test_chunks_have_the_lengths_of_torch(length: int, chunks: int, expected: list[int], backend: Backend) -> None:
    x = ops.zeros((2, length))
    assert [part.shape[1] for part in ops.chunk(x, chunks, 1)] == expected
    assert [part.shape[0] for part in ops.chunk(ops.transpose(x), chunks)] == expected
    with pytest.raises(ValueError, match=r"^chunk: chunks must be >= 1, got 0"):
        ops.chunk(x, 0)


def test_aliases_are_operations_under_another_name() -> None:
    names = [name for name, value in vars(aliases).items() if hasattr(value, "__operation__")]
    further = [name for name in names if operation_of(getattr(aliases, name)).name != name]
    assert len(further) > 60
    assert set(further) <= set(ops.__all__)
    assert not set(further) & set(REGISTRY)


def test_importing_the_library_reads_no_spellings() -> None:
    code = "import sys, ember_ml; sys.exit('ember_ml.spellings' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("module", [spellings, aliases, optim], ids=lambda module: module.__name__)
def test_examples_run(module: ModuleType, backend: Backend) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize(
    ("loss", "meant"),
    [
        ("CrossEntropyLoss", "sparse_categorical_crossentropy"),
        ("NLLLoss", "sparse_categorical_crossentropy"),
        ("BCEWithLogitsLoss", "binary_crossentropy"),
        ("KLDivLoss", "kl_divergence"),
        ("SmoothL1Loss", "huber_loss"),
        ("SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"),
    ],
)
def test_names_of_losses_of_other_libraries(loss: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"got '{loss}'; did you mean '{meant}'"):
        training.Trainer(nn.Linear(2, 2), loss, "adam")


@pytest.mark.parametrize(("dtype", "meant"), [("flaot32", "float32"), ("Int64", "int64"), ("double", "float64")])
def test_names_of_dtypes(dtype: str, meant: str) -> None:
    for call in (lambda: ops.zeros(2, dtype=dtype), lambda: ops.cast([1], dtype), lambda: nn.Linear(2, 2, dtype=dtype)):
        with pytest.raises(TypeError, match=f"dtype must be one of .* got '{dtype}'; did you mean '{meant}'"):
            call()
    with pytest.raises(TypeError, match=r"(?m)got 'text'$"):
        ops.zeros(2, dtype="text")
