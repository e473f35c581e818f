"""What users of NumPy, torch and Keras expect of tensors, modules and layers, on every engine."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops, transform
from ember_ml.backend import Backend
from ember_ml.nn.tensor import EmberTensor, wrap
from ember_ml.testing.comparison import host
from ember_ml.tools import layers

X = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]], np.float32)


class TestNumpyArraysAsData:
    """A NumPy array is data for the active engine, as a list is."""

    @pytest.mark.parametrize("data", [X, X.astype(">f4"), np.float32(1.5), X[::-1]], ids=["c", "swapped", "0d", "view"])
    def test_they_go_to_the_active_engine(self, backend: Backend, data: Any) -> None:
        x = EmberTensor(data)
        assert x.backend == EmberTensor(data.tolist()).backend == backend.name
        assert (x.dtype, x.shape) == ("float32", data.shape)
        np.testing.assert_array_equal(x.numpy(), data)

    def test_they_compute_with_tensors_of_the_active_engine(self, backend: Backend) -> None:
        np.testing.assert_array_equal((EmberTensor(X) + ops.ones((2, 3))).numpy(), X + 1)
        np.testing.assert_array_equal((EmberTensor(X) * EmberTensor([1.0, 2.0, 3.0])).numpy(), X * [1.0, 2.0, 3.0])

    def test_numpy_shares_its_memory(self) -> None:
        with ember_ml.use_backend("numpy"):
            assert EmberTensor(X).native is X

    def test_wrap_leaves_them_on_numpy(self, backend: Backend) -> None:
        assert wrap(X).backend == "numpy"
        assert wrap(X).native is X

    def test_errors_advise_the_active_engine(self, backend: Backend) -> None:
        other = next(name for name in ember_ml.get_available_backends() if name != backend.name)
        x, y = EmberTensor(X), EmberTensor(X).to_backend(other)
        for pair in ((x, y), (y, x)):
            with pytest.raises(TypeError, match=f"add: tensors must be of one engine.*to_backend\\('{backend.name}'"):
                ops.add(*pair)

    def test_pickles_keep_the_engine_of_a_model(self, backend: Backend) -> None:
        model = nn.Linear(3, 2).to_backend("numpy")
        with ember_ml.use_backend(backend.name):
            assert pickle.loads(pickle.dumps(model)).backend == "numpy"


class Holder(nn.Module):
    """A module that keeps whatever it is given in an attribute."""

    def __init__(self, value: Any) -> None:
        self.held = value

    def forward(self, x: Any) -> Any:
        return ops.multiply(x, self.held)


class TestUnregisteredAttributes:
    """A tensor that is neither parameter nor buffer, and a module of another library, are reported once."""

    @pytest.fixture
    def holder(self) -> type[Holder]:
        return type("Holder", (Holder,), {})

    @pytest.mark.parametrize("wrapped", [False, True])
    def test_a_floating_tensor_is_reported_where_it_is_assigned(
        self, holder: Any, wrapped: bool, backend: Backend
    ) -> None:
        value: Any = ops.ones((2, 3))
        module = nn.Module()
        with pytest.warns(UserWarning, match=r"Holder: a tensor .* Parameter\(.* Buffer\(.* float32\[2, 3\] in 'held'"):
            module = holder(EmberTensor(value) if wrapped else value)
        with pytest.warns(UserWarning, match="in 'later'") as caught:
            module.later = value
        assert [warning.filename for warning in caught] == [__file__]
        assert module.tensors() == {}
        # Once for a class and a name.
        module.later = value
        holder(value)

    def test_what_is_registered_or_no_floating_tensor_is_not(self, holder: Any, backend: Backend) -> None:
        module = holder(nn.Buffer(ops.ones(2), persistent=False))
        module.held = ops.zeros(2)
        for value in (ops.asarray([1, 2]), ops.asarray([True]), np.array(["a"]), 1.5, None, print, object(), X.shape):
            holder(value)
        assert list(module.tensors()) == ["held"]

    def test_compiled_code_is_not(self, holder: Any, backend: Backend) -> None:
        if backend.name != "torch":
            pytest.skip("only torch's compiler says that it traces")

        def run(x: Any) -> Any:
            module = holder(nn.Parameter(ops.ones(2)))
            module.last = ops.multiply(x, 2.0)
            return module.last

        np.testing.assert_array_equal(host(transform.compile(run)(ops.ones(2))), [2.0, 2.0])

    def test_an_engine_needs_no_random_numbers_for_it(
        self, holder: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(backend, "random", object())
        with pytest.warns(UserWarning, match="in 'held'"):
            holder(ops.ones(2))

    def test_a_module_of_torch_is(self, holder: Any) -> None:
        torch = pytest.importorskip("torch")
        with pytest.warns(UserWarning, match=r"Holder: a module .* got Linear of torch\.nn in 'held'.*load_state_dict"):
            holder(torch.nn.Linear(2, 2))

    def test_a_module_of_mlx_is(self, holder: Any) -> None:
        pytest.importorskip("mlx.core")
        mlx_nn = pytest.importorskip("mlx.nn")
        with pytest.warns(UserWarning, match=r"Holder: a module .* got Linear of mlx\.nn in 'held'"):
            holder(mlx_nn.Linear(2, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("queries", "keys"), [(1, 6), (3, 6), (6, 6), (6, 4), (40, 70)])
class TestCausalAlignment:
    """Causal attention of fewer queries than keys, aligned as decoding with a cache requires."""

    @staticmethod
    def heads(queries: int, keys: int, dtype: str) -> list[Any]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal((2, n, 2, 8)).astype(dtype) for n in (queries, keys, keys)]

    @pytest.mark.parametrize("alignment", ["top_left", "bottom_right"])
    @pytest.mark.parametrize("options", [{}, {"mask": True}, {"bias": True}, {"scale": -0.5}], ids=str)
    def test_it_is_that_of_a_mask(
        self, backend: Backend, queries: int, keys: int, dtype: str, alignment: str, options: dict[str, Any]
    ) -> None:
        rng, tensors = np.random.default_rng(1), self.heads(queries, keys, dtype)
        given = dict(options)
        visible = np.tri(queries, keys, keys - queries if alignment == "bottom_right" else 0, dtype=bool)
        if "mask" in options:
            given["mask"] = rng.random((queries, keys)) < 0.7
            visible = visible & given["mask"]
        if "bias" in options:
            given["bias"] = rng.standard_normal((queries, keys)).astype(dtype)
        expected = host(ops.dot_product_attention(*tensors, **{**given, "mask": visible}))
        result = ops.dot_product_attention(*tensors, **given, is_causal=True, causal_alignment=alignment)
        np.testing.assert_allclose(host(result), expected, atol=1e-5)
        assert not np.isnan(expected).any()

    def test_gradients_are_those_of_a_mask(self, backend: Backend, queries: int, keys: int, dtype: str) -> None:
        tensors = [ops.asarray(x) for x in self.heads(queries, keys, dtype)]
        visible = np.tri(queries, keys, keys - queries, dtype=bool)

        def gradients(**options: Any) -> list[Any]:
            def total(query: Any, key: Any, value: Any) -> Any:
                return ops.sum(ops.sin(ops.dot_product_attention(query, key, value, **options)))

            return [host(transform.grad(total, argnums=i)(*tensors)) for i in range(3)]

        found = gradients(is_causal=True, causal_alignment="bottom_right")
        for one, expected in zip(found, gradients(mask=visible), strict=True):
            np.testing.assert_allclose(one, expected, atol=1e-5)

    def test_the_layer_decodes_as_it_trains(self, backend: Backend, queries: int, keys: int, dtype: str) -> None:
        layer = nn.MultiHeadAttention(16, 2, dtype=dtype)
        x = ops.asarray(np.random.default_rng(2).standard_normal((2, max(queries, keys), 16)).astype(dtype))
        whole = host(layer(x, is_causal=True))
        last = layer(x[:, -queries:], x, is_causal=True, causal_alignment="bottom_right")
        np.testing.assert_allclose(host(last), whole[:, -queries:], atol=1e-5)

    def test_dropout_hides_the_same_keys(self, backend: Backend, queries: int, keys: int, dtype: str) -> None:
        layer = nn.MultiHeadAttention(16, 2, dropout=1e-9, dtype=dtype)
        rng = np.random.default_rng(3)
        query, key = (ops.asarray(rng.standard_normal((2, n, 16)).astype(dtype)) for n in (queries, keys))
        options: dict[str, Any] = {"is_causal": True, "causal_alignment": "bottom_right"}
        trained = host(layer(query, key, **options))
        np.testing.assert_allclose(trained, host(layer.eval()(query, key, **options)), atol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_an_unknown_causal_alignment_is_refused(backend: Backend, dropout: float) -> None:
    with pytest.raises(ValueError, match="causal_alignment must be 'top_left' or 'bottom_right', got 'left'"):
        nn.MultiHeadAttention(4, 2, dropout)(ops.ones((1, 2, 4)), is_causal=True, causal_alignment="left")


class TestStatesOfTorch:
    """Models of ``torch.nn``, loaded as the documentation says, compute the same."""

    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_a_convolutional_network(self, backend: Backend, rank: int) -> None:
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        sizes = (7, 8, 5)[:rank]
        inner = int(np.prod([n - 4 for n in sizes]))
        theirs = torch.nn.Sequential(
            getattr(torch.nn, f"Conv{rank}d")(2, 4, 3),
            getattr(torch.nn, f"BatchNorm{rank}d")(4),
            torch.nn.ReLU(),
            getattr(torch.nn, f"Conv{rank}d")(4, 6, 3, groups=2),
            torch.nn.Flatten(),
            torch.nn.Linear(6 * inner, 8),
            torch.nn.ReLU(),
            torch.nn.Linear(8, 8),
        )
        theirs(torch.randn(4, 2, *sizes))
        theirs.eval()
        convolution: Any = getattr(nn, f"Conv{rank}d")
        body = [convolution(2, 4, 3), nn.BatchNorm(4), nn.ReLU(), convolution(4, 6, 3, groups=2), nn.Flatten()]
        ours = nn.Sequential(*body, nn.Linear(inner * 6, 8), nn.ReLU(), nn.Linear(8, 8)).eval()
        keys = ours.load_torch_state_dict(theirs.state_dict(), flattened={"5": 6})
        assert keys == ([], [])
        x = torch.randn(3, 2, *sizes)
        expected = theirs(x).detach().numpy()
        np.testing.assert_allclose(host(ours(x.movedim(1, -1).numpy())), expected, atol=1e-5)
        # In the order of channels of torch, the outputs of Flatten are, too.
        first = [convolution(2, 4, 3, data_format="channels_first"), nn.BatchNorm(4, axis=1), nn.ReLU()]
        first += [convolution(4, 6, 3, groups=2, data_format="channels_first"), nn.Flatten()]
        ours = nn.Sequential(*first, nn.Linear(6 * inner, 8), nn.ReLU(), nn.Linear(8, 8)).eval()
        ours.load_torch_state_dict(theirs.state_dict())
        np.testing.assert_allclose(host(ours(x.numpy())), expected, atol=1e-5)

    @pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
    def test_a_recurrent_network(self, backend: Backend, name: str) -> None:
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        theirs = getattr(torch.nn, name)(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        for ours, state in (
            (getattr(nn, name)(3, 4, num_layers=2, bidirectional=True), theirs.state_dict()),
            (
                nn.Sequential(getattr(nn, name)(3, 4, num_layers=2, bidirectional=True)),
                torch.nn.Sequential(theirs).state_dict(),
            ),
        ):
            ours.load_torch_state_dict(state)
            x = torch.randn(2, 5, 3)
            np.testing.assert_allclose(host(ours(x.numpy())[0]), theirs(x)[0].detach().numpy(), atol=1e-5)

    def test_an_embedding_is_not_transposed(self, backend: Backend) -> None:
        torch = pytest.importorskip("torch")
        theirs = torch.nn.Sequential(torch.nn.Embedding(4, 4), torch.nn.Linear(4, 4))
        ours = nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4))
        ours.load_torch_state_dict(theirs.state_dict())
        tokens = np.array([[0, 3, 1]])
        expected = theirs(torch.tensor(tokens)).detach().numpy()
        np.testing.assert_allclose(host(ours(tokens)), expected, atol=1e-5)

    def test_the_count_of_batches_is_ignored_in_batch_norm_alone(self, backend: Backend) -> None:
        state = {**nn.BatchNorm(2).state_dict(), "num_batches_tracked": 3}
        assert nn.BatchNorm(2).load_state_dict(state) == ([], [])
        assert nn.Sequential(nn.BatchNorm(2)).load_state_dict({f"0.{n}": x for n, x in state.items()}) == ([], [])
        with pytest.raises(ValueError, match="unexpected: num_batches_tracked"):
            nn.LayerNorm(2).load_state_dict({**nn.LayerNorm(2).state_dict(), "num_batches_tracked": 3})

    @pytest.mark.parametrize("flattened", [{"0": 3}, {"1": 1}, {"2": 2}])
    def test_wrong_channels_are_refused(self, backend: Backend, flattened: dict[str, int]) -> None:
        model = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
        with pytest.raises(ValueError, match="Sequential: flattened must have the paths of Linear layers"):
            model.load_torch_state_dict({}, flattened=flattened)


def test_counts_of_parameters(backend: Backend) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm(8), nn.Linear(8, 4)).freeze("0")
    assert model.count_parameters() == model.summary().total == 40 + 16 + 36
    assert model.count_parameters(trainable=True) == 52
    assert model.count_parameters(trainable=False) == 40
    assert nn.ReLU().count_parameters() == 0
    tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tied[1].weight = nn.Tied(tied[0], "weight")
    assert tied.count_parameters() == 16 + 4 + 4


@pytest.mark.parametrize("suffix", ["", ".npz"])
def test_savez_writes_what_numpy_reads(backend: Backend, tmp_path: Any, suffix: str) -> None:
    counts = np.array([1, 2, 3], np.int16)
    ops.savez(tmp_path / f"data{suffix}", ops.asarray(X), [1.0, 2.0], counts=counts, wrapped=EmberTensor(X))
    assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]
    with np.load(tmp_path / "data.npz") as found:
        assert set(found) == {"arr_0", "arr_1", "counts", "wrapped"}
        np.testing.assert_array_equal(found["arr_0"], X)
        np.testing.assert_array_equal(found["arr_1"], np.float32([1, 2]))
        np.testing.assert_array_equal(found["wrapped"], X)
        assert found["counts"].dtype == np.int16
    loaded = ops.load(tmp_path / "data.npz")
    assert isinstance(loaded["counts"], backend.tensors)
    np.testing.assert_array_equal(host(loaded["counts"]), counts)


def test_savez_refuses_a_name_twice(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="savez: a tensor must have a name of its own, got arr_0 twice"):
        ops.savez(tmp_path / "x", [1.0], arr_0=[2.0])
    assert list(tmp_path.iterdir()) == []


class TestNotebooks:
    """HTML is small, escaped and needs nothing from elsewhere."""

    def test_tensors(self, backend: Backend) -> None:
        x = EmberTensor([[1.5, 2.0]])
        html = x._repr_html_()
        assert html.startswith("<pre>[[1.5, 2. ]]</pre>")
        assert f"float32[1, 2], device=&#x27;{x.device}&#x27;, backend=&#x27;{backend.name}&#x27;" in html
        assert len(EmberTensor(ops.zeros((1000, 1000)))._repr_html_()) < 2000

    def test_modules(self, backend: Backend) -> None:
        model = nn.ModuleDict({"<b>&": nn.Linear(2, 3), "frozen": nn.Linear(3, 4).freeze()})
        html = model._repr_html_()
        assert "<td>&lt;b&gt;&amp;</td><td>Linear</td><td>9</td>" in html
        assert "<td>16 (frozen)</td>" in html
        assert "25 parameters: 9 trainable, 16 frozen" in html
        assert "http" not in html
        assert "<td>[5, 3]</td>" in nn.Linear(2, 3).summary((5, 2))._repr_html_()
        deep = nn.Sequential(*[nn.ReLU() for _ in range(500)])._repr_html_()
        assert "and 301 more" in deep
        assert len(deep) < 20_000


IMAGES = np.random.default_rng(4).random((6, 5, 7, 2)).astype(np.float32)
LABELS = np.array([0, 2, 1, 1, 0, 2])
AUGMENTATIONS: dict[str, Any] = {
    "RandomFlip": lambda: nn.RandomFlip("horizontal_and_vertical"),
    "RandomCrop": lambda: nn.RandomCrop((4, 6), padding=1, fill=-1.0),
    "RandomRotation": lambda: nn.RandomRotation(40.0, fill=0.5),
    "RandomNoise": lambda: nn.RandomNoise(0.3),
    "MixUp": lambda: nn.MixUp(0.4, num_classes=3),
    "CutMix": lambda: nn.CutMix(num_classes=3),
}


def augmented(name: str, x: Any, **options: Any) -> list[Any]:
    """Results of an augmentation, as arrays."""
    layer = AUGMENTATIONS[name]()
    results = layer(x, LABELS, **options) if name in ("MixUp", "CutMix") else [layer(x, **options)]
    return [host(result) for result in results]


@pytest.mark.parametrize("name", AUGMENTATIONS)
class TestAugmentation:
    """Augmentations are the same on every engine, and act in training alone."""

    @pytest.mark.parametrize("key", [None, 11])
    def test_draws_are_portable(self, name: str, key: int | None) -> None:
        found = []
        for engine in ember_ml.get_available_backends():
            with ember_ml.use_backend(engine):
                ops.set_seed(5)
                found.append(augmented(name, ops.asarray(IMAGES), key=key))
        for results in found[1:]:
            for result, expected in zip(results, found[0], strict=True):
                np.testing.assert_allclose(result, expected, atol=1e-5)
        if found[0][0].shape == IMAGES.shape:
            assert not np.allclose(found[0][0], IMAGES)

    def test_a_key_decides_alone(self, name: str, backend: Backend) -> None:
        ops.set_seed(1)
        first = augmented(name, ops.asarray(IMAGES), key=3)
        again, other = augmented(name, ops.asarray(IMAGES), key=3), augmented(name, ops.asarray(IMAGES), key=4)
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        assert not np.array_equal(first[0], other[0])

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    def test_the_dtype_is_kept(self, name: str, dtype: str, backend: Backend) -> None:
        layer, x = AUGMENTATIONS[name](), ops.asarray(IMAGES, dtype=dtype)
        result = layer(x, LABELS)[0] if name in ("MixUp", "CutMix") else layer(x)
        assert ops.dtype(result) == dtype

    def test_evaluation_changes_nothing(self, name: str, backend: Backend) -> None:
        layer, x, y = AUGMENTATIONS[name]().eval(), ops.asarray(IMAGES), ops.asarray(LABELS)
        if name in ("MixUp", "CutMix"):
            assert layer(x, y) == (x, y)
        else:
            assert layer(x) is x

    def test_tensors_stay_on_their_engine(self, name: str, backend: Backend) -> None:
        other = next(engine for engine in ember_ml.get_available_backends() if engine != backend.name)
        x = EmberTensor(IMAGES).to_backend(other)
        layer = AUGMENTATIONS[name]()
        result = layer(x, LABELS)[0] if name in ("MixUp", "CutMix") else layer(x)
        assert isinstance(result, EmberTensor)
        assert result.backend == other

    def test_the_order_of_channels(self, name: str, backend: Backend) -> None:
        last = AUGMENTATIONS[name]()
        if name in ("RandomNoise", "MixUp"):
            pytest.skip("takes any shape, and has no option for the order")
        first = AUGMENTATIONS[name]()
        first.data_format = "channels_first"
        swapped = np.moveaxis(IMAGES, -1, 1)
        if name == "CutMix":
            results = first(ops.asarray(swapped), LABELS, key=2), last(ops.asarray(IMAGES), LABELS, key=2)
            np.testing.assert_allclose(host(results[0][1]), host(results[1][1]), atol=1e-6)
            results = results[0][0], results[1][0]
        else:
            results = first(ops.asarray(swapped), key=2), last(ops.asarray(IMAGES), key=2)
        np.testing.assert_allclose(np.moveaxis(host(results[0]), 1, -1), host(results[1]), atol=1e-6)


class TestAugmentationOracles:
    """Augmentations are the operations that they are called after."""

    @pytest.mark.parametrize("mode", ["horizontal", "vertical", "horizontal_and_vertical"])
    def test_flips(self, mode: str, backend: Backend) -> None:
        reversed_axes = [axis for axis, name in ((1, "vertical"), (2, "horizontal")) if name in mode]
        always = nn.RandomFlip(mode, rate=1.0)(ops.asarray(IMAGES))
        np.testing.assert_array_equal(host(always), np.flip(IMAGES, reversed_axes))
        np.testing.assert_array_equal(host(nn.RandomFlip(mode, rate=0.0)(ops.asarray(IMAGES))), IMAGES)
        kinds = [np.flip(IMAGES, axes) for axes in ((), 1, 2, (1, 2))]
        result = host(nn.RandomFlip(mode)(ops.asarray(IMAGES), key=0))
        for i, image in enumerate(result):
            assert any(np.array_equal(image, kind[i]) for kind in kinds)
        bytes_in = (IMAGES * 255).astype(np.uint8)
        assert host(nn.RandomFlip(mode)(ops.asarray(bytes_in))).dtype == np.uint8

    def test_crops(self, backend: Backend) -> None:
        padded = np.pad(IMAGES, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=2.0)
        result = host(nn.RandomCrop((4, 5), 1, fill=2.0)(ops.asarray(IMAGES), key=0))
        places = set()
        for image, whole in zip(result, padded, strict=True):
            found = [(i, j) for i in range(4) for j in range(5) if np.array_equal(whole[i : i + 4, j : j + 5], image)]
            assert len(found) == 1
            places.update(found)
        assert len(places) > 1

    @pytest.mark.parametrize(("degrees", "turns"), [(0, 0), (90, 1), (180, 2), (-90, 3)])
    def test_rotations_by_right_angles(self, degrees: float, turns: int, backend: Backend) -> None:
        square = IMAGES[:, :, :5]
        result = nn.RandomRotation((degrees, degrees))(ops.asarray(square))
        np.testing.assert_allclose(host(result), np.rot90(square, turns, (1, 2)), atol=1e-5)

    def test_a_rotation_of_a_slope(self, backend: Backend) -> None:
        """Interpolation is exact for a linear function, except where the outside is seen."""
        rows, columns = np.mgrid[-4:5, -4:5].astype(np.float32)
        image = (2 * rows + 3 * columns)[None, :, :, None]
        angle = np.deg2rad(30)
        sine, cosine = np.sin(angle), np.cos(angle)
        from_row, from_column = columns * sine + rows * cosine, columns * cosine - rows * sine
        seen = np.maximum(abs(from_row), abs(from_column)) <= 4
        result = host(nn.RandomRotation((30, 30), fill=7.0)(ops.asarray(image)))[0, :, :, 0]
        np.testing.assert_allclose(result[seen], (2 * from_row + 3 * from_column)[seen], atol=1e-4)
        assert result[0, 0] == 7.0

    def test_noise(self, backend: Backend) -> None:
        noise = host(nn.RandomNoise(0.5)(ops.zeros((200, 100)), key=1))
        assert abs(noise.mean()) < 0.01
        assert abs(noise.std() - 0.5) < 0.01

    def test_mixtures(self, backend: Backend) -> None:
        """From the mixed targets, which are one-hot before, the shares and the partners can be read."""
        one_hot = np.eye(6, dtype=np.float32)
        for layer in (nn.MixUp(1.0), nn.CutMix(1.0)):
            x, y = (host(part) for part in layer(ops.asarray(IMAGES), ops.asarray(one_hot), key=5))
            np.testing.assert_allclose(y.sum(1), 1.0, atol=1e-6)
            mixed = np.einsum("ij,jhwc->ihwc", y, IMAGES)
            if isinstance(layer, nn.MixUp):
                np.testing.assert_allclose(x, mixed, atol=1e-5)
                continue
            for i in range(6):
                own = np.all(x[i] == IMAGES[i], axis=-1)
                np.testing.assert_allclose(own.mean(), y[i, i], atol=1e-6)
                partner = i if own.all() else int(np.argmax(np.where(np.arange(6) == i, -1, y[i])))
                np.testing.assert_array_equal(x[i][~own], IMAGES[partner][~own])
                rows, columns = np.nonzero(~own)
                if len(rows):
                    assert np.ptp(rows) * np.ptp(columns) + np.ptp(rows) + np.ptp(columns) + 1 == len(rows)

    def test_labels_become_one_hot(self, backend: Backend) -> None:
        _, y = nn.MixUp(num_classes=3)(ops.asarray(IMAGES), ops.asarray(LABELS))
        assert tuple(y.shape) == (6, 3)
        with pytest.raises(TypeError, match="MixUp: y must be floating, or num_classes be given, got int64"):
            nn.MixUp()(ops.asarray(IMAGES), ops.asarray(LABELS))

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: nn.RandomFlip("left"), ValueError, "RandomFlip: mode must be 'horizontal', .* got 'left'"),
            (lambda: nn.RandomFlip(rate=2), ValueError, "RandomFlip: rate must be from 0 to 1, got 2"),
            (lambda: nn.RandomCrop(0), ValueError, "RandomCrop: size must be >= 1"),
            (lambda: nn.RandomRotation(-1), ValueError, "RandomRotation: degrees must be >= 0, or a range, got -1"),
            (lambda: nn.RandomNoise(-1), ValueError, "RandomNoise: stddev must be >= 0, got -1"),
            (lambda: nn.MixUp(0), ValueError, "MixUp: alpha must be > 0, got 0"),
            (lambda: nn.RandomFlip()(ops.ones((2, 3))), ValueError, r"RandomFlip: images must have shape \(batch, h"),
            (lambda: nn.RandomCrop(9)(ops.ones((1, 2, 3, 1))), ValueError, r"RandomCrop: images must be at least \[9"),
            (lambda: nn.RandomNoise()(ops.asarray([1])), TypeError, "RandomNoise: x must be floating, got int64"),
        ],
    )
    def test_wrong_options(self, make: Any, error: type[Exception], message: str, backend: Backend) -> None:
        with pytest.raises(error, match=message):
            make()


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
class TestLengths:
    """Sequences of several lengths in one batch, as torch's packed sequences compute them."""

    LENGTHS = (3, 6, 1, 5)

    @staticmethod
    def pair(name: str, batch_first: bool = True, bidirectional: bool = True) -> tuple[Any, Any, Any]:
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        options = {"num_layers": 2, "bidirectional": bidirectional, "batch_first": batch_first}
        theirs = getattr(torch.nn, name)(3, 4, **options)
        ours = getattr(nn, name)(3, 4, **options)
        ours.load_torch_state_dict(theirs.state_dict())
        return theirs, ours, torch.randn(*((4, 6) if batch_first else (6, 4)), 3)

    @pytest.mark.parametrize("batch_first", [True, False])
    @pytest.mark.parametrize("bidirectional", [True, False])
    @pytest.mark.parametrize("has_state", [True, False])
    def test_they_are_torchs(
        self, name: str, batch_first: bool, bidirectional: bool, has_state: bool, backend: Backend
    ) -> None:
        torch = pytest.importorskip("torch")
        theirs, ours, x = self.pair(name, batch_first, bidirectional)
        start = [torch.randn(4 if bidirectional else 2, 4, 4) for _ in range(2 if name == "LSTM" else 1)]
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x, torch.tensor(self.LENGTHS), batch_first=batch_first, enforce_sorted=False
        )
        given = (tuple(start) if name == "LSTM" else start[0]) if has_state else None
        outputs, state = theirs(packed, given)
        expected, _ = torch.nn.utils.rnn.pad_packed_sequence(outputs, batch_first=batch_first)
        own = [ops.asarray(part.numpy()) for part in start]
        found, ends = ours(
            ops.asarray(x.numpy()),
            (tuple(own) if name == "LSTM" else own[0]) if has_state else None,
            lengths=self.LENGTHS,
        )
        np.testing.assert_allclose(host(found), expected.detach().numpy(), atol=1e-5)
        pairs = zip(ends, state, strict=True) if name == "LSTM" else [(ends, state)]
        for one, other in pairs:
            np.testing.assert_allclose(host(one), other.detach().numpy(), atol=1e-5)

    def test_padding_does_not_matter(self, name: str, backend: Backend) -> None:
        _, ours, x = self.pair(name)
        padded = x.numpy().copy()
        for row, length in zip(padded, self.LENGTHS, strict=True):
            row[length:] = 100.0

        def total(x: Any) -> Any:
            return ops.sum(ops.sin(ours(x, lengths=self.LENGTHS)[0]))

        for given in (x.numpy(), padded):
            gradient = host(transform.grad(total)(ops.asarray(given)))
            for row, length in zip(gradient, self.LENGTHS, strict=True):
                assert not row[length:].any()
                assert row[:length].all()
        np.testing.assert_allclose(host(total(ops.asarray(padded))), host(total(ops.asarray(x.numpy()))), rtol=1e-5)

    @pytest.mark.parametrize(
        "make", [tuple, np.int32, ops.asarray, EmberTensor], ids=["list", "numpy", "own", "wrapped"]
    )
    def test_lengths_of_any_type(self, name: str, make: Any, backend: Backend) -> None:
        _, ours, x = self.pair(name)
        x = ops.asarray(x.numpy())
        expected = host(ours(x, lengths=list(self.LENGTHS))[0])
        found, _ = ours(x, lengths=make(self.LENGTHS))
        np.testing.assert_array_equal(host(found), expected)

    def test_full_and_no_lengths(self, name: str, backend: Backend) -> None:
        _, ours, x = self.pair(name)
        x = ops.asarray(x.numpy())
        np.testing.assert_allclose(host(ours(x, lengths=[6] * 4)[0]), host(ours(x)[0]), atol=1e-6)
        outputs, state = ours(x, lengths=[0] * 4)
        assert not host(outputs).any()
        assert not host(state[0]).any()

    @pytest.mark.parametrize(
        ("lengths", "error", "message"),
        [
            ([1, 2], ValueError, r"lengths must have shape \(batch,\) for x of 3 axes, got shape \[2\]"),
            ([1, 2, 3, 7], ValueError, r"lengths must be from 0 to the number of steps, 6, got \[1, 2, 3, 7\]"),
            ([1, 2, 3, -1], ValueError, "lengths must be from 0 to"),
            ([1.0, 2.0, 3.0, 4.0], TypeError, "lengths must be integers, got float"),
        ],
    )
    def test_wrong_lengths(
        self, name: str, lengths: Any, error: type[Exception], message: str, backend: Backend
    ) -> None:
        with pytest.raises(error, match=f"{name}: {message}"):
            getattr(nn, name)(3, 4)(ops.ones((4, 6, 3)), lengths=lengths)


class TestDocumentation:
    """Every layer is on its page with its signature, and pages import in one style."""

    ROOT = Path(__file__).parent.parent

    def test_every_layer_has_its_signature(self) -> None:
        page = layers.page()
        assert (self.ROOT / "docs" / "layers.md").read_text(encoding="utf-8") == page
        names = [name for name in nn.modules.__all__ if name != "activations"]
        assert [name for name in names if f"nn.{name}(" not in page and f"### {name}\n" not in page] == []
        for line in (
            "`nn.LSTM(input_size, hidden_size, num_layers=1, bias=True,",
            "Call: `layer(x, state=None, *, lengths=None)`: outputs of all steps",
            "- `embed_dim`: number of features of the queries and of the output.",
            "| `nn.LeakyReLU(negative_slope=0.01)` |",
            "Another name for [`Linear`](#linear).",
        ):
            assert line in page

    def test_pages_import_in_one_style(self) -> None:
        pages = [self.ROOT / "README.md", *(self.ROOT / "docs").glob("*.md")]
        other = re.compile(r"^from ember_ml\.(nn|nn\.modules|optim|transform) import", re.MULTILINE)
        assert [page.name for page in pages if other.search(page.read_text(encoding="utf-8"))] == []

    def test_make_says_what_it_installs(self) -> None:
        recipe = (self.ROOT / "Makefile").read_text(encoding="utf-8").partition(".venv/.installed: ")[2]
        assert "Installing" in recipe
        assert "--quiet" not in recipe
