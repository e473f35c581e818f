"""What users of NumPy, torch and Keras expect of tensors, modules and layers, on every engine."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops, transform
from ember_ml.backend import Backend
from ember_ml.nn.tensor import EmberTensor, wrap
from ember_ml.testing.comparison import host

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
        html = EmberTensor([[1.5, 2.0]])._repr_html_()
        assert html.startswith("<pre>[[1.5, 2. ]]</pre>")
        assert f"float32[1, 2], device=&#x27;cpu&#x27;, backend=&#x27;{backend.name}&#x27;" in html
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
