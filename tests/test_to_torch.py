"""Models as modules of torch and back. The original models are on every engine; torch computes with the copies."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import Backend
from ember_ml.errors import UnsupportedError

torch = pytest.importorskip("torch", reason="models become modules of torch")

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
Y = np.array([0, 1, 2, 0, 1, 2])


def small() -> Any:
    ops.random.set_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm(5), nn.Tanh(), nn.Linear(5, 3))


def train(module: Any, steps: int = 5) -> list[float]:
    optimizer = torch.optim.AdamW(module.parameters(), 0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(torch.from_numpy(X)), torch.from_numpy(Y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_copy_of_the_model_trains_in_torch(backend: Backend) -> None:
    model = small()
    before = {path: ops.to_numpy(x).copy() for path, x in model.state_dict().items()}
    module = nn.to_torch(model)
    assert isinstance(module, torch.nn.Module)
    assert list(module.state_dict()) == list(before)
    assert [name for name, _ in module.named_parameters()] == list(model.parameters())
    module.eval()
    expected = ops.to_numpy(model.eval()(ops.asarray(X)))
    np.testing.assert_allclose(module(torch.from_numpy(X)).detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    losses = train(module.train())
    assert losses[-1] < losses[0]
    # Neither the weights nor the statistics of the model change; those of the module do.
    for path, value in model.state_dict().items():
        np.testing.assert_array_equal(ops.to_numpy(value), before[path])
        assert not np.array_equal(module.state_dict()[path].numpy(), before[path]), path
    again = nn.from_torch(module.eval())
    assert again.backend == model.backend
    found = ops.to_numpy(again(ops.asarray(X)))
    np.testing.assert_allclose(found, module(torch.from_numpy(X)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_the_statistics_are_those_of_torch() -> None:
    with ember_ml.use_backend("torch"):
        module = nn.to_torch(nn.BatchNorm(4))
    peer = torch.nn.BatchNorm1d(4)
    buffer = module.running_mean
    for x in (torch.from_numpy(X), torch.from_numpy(X * 2 + 1)):
        torch.testing.assert_close(module(x), peer(x))
    torch.testing.assert_close(module.running_mean, peer.running_mean)
    torch.testing.assert_close(module.running_var, peer.running_var)
    # In place: DDP holds the tensor.
    assert module.running_mean is buffer


def test_modes_states_copies_and_pickles() -> None:
    module = nn.to_torch(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)).eval())
    x = torch.ones(2, 4)
    assert not module.training
    assert torch.equal(module(x), module(x))
    module.train()
    assert not torch.equal(module(torch.ones(50, 4)), module(torch.ones(50, 4)))
    getattr(module, "1").eval()
    assert torch.equal(module(x), module(x))
    module.eval()
    others = [copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    with torch.no_grad():
        next(module.parameters()).add_(1.0)
    for other in others:
        assert not torch.equal(other(x), module(x))
        other.load_state_dict(module.state_dict())
        assert torch.equal(other(x), module(x))
    again = nn.from_torch(module)
    again.load_state_dict(module.state_dict())
    assert "Linear(4, 3)" in repr(module)
    assert torch.equal(torch.func.functional_call(module, {"0.bias": torch.zeros(3)}, (x,)), module(x) - module(x * 0))


def test_ties_frozen_parameters_and_dtypes(backend: Backend) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = nn.Tied(model[0], "weight")
    model.freeze("*.bias")
    model.count = nn.Buffer(ops.asarray([1, 2]), persistent=False)
    module = nn.to_torch(model.astype("float16"))
    assert {name: x.requires_grad for name, x in module.named_parameters()} == {
        "0.weight": True,
        "0.bias": False,
        "1.bias": False,
    }
    assert list(module.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert getattr(module, "1").weight is getattr(module, "0").weight
    assert (module.count.dtype, getattr(module, "0").weight.dtype) == (torch.int64, torch.float16)
    again = nn.from_torch(module.requires_grad_(True))
    assert list(again.parameters()) == ["0.weight", "0.bias", "1.bias"]
    assert list(again.state_dict()) == list(model.state_dict())


def test_export_and_compile_trace_the_module() -> None:
    with ember_ml.use_backend("torch"):
        module = nn.to_torch(small()).eval()
        x = torch.from_numpy(X)
        compiled = torch.compile(module, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), module(x))
    batch = torch.export.Dim("batch")
    program = torch.export.export(module, (x,), dynamic_shapes=(({0: batch},),))
    torch.testing.assert_close(program.module()(x[:3]), module(x[:3]))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.filterwarnings("ignore:While compiling, we found certain side effects:UserWarning")
def test_exported_attention_takes_sequences_of_any_length(is_causal: bool, strict: bool) -> None:
    """The example is shorter than one vector, and the others are not."""
    layer = nn.CausalSelfAttention(8, 2) if is_causal else nn.MultiHeadAttention(8, 2)
    module = nn.to_torch(layer).eval()
    shapes = (({0: torch.export.Dim("batch"), 1: torch.export.Dim("length")},),)
    with ember_ml.use_backend("torch"):
        program = torch.export.export(module, (torch.randn(2, 5, 8),), dynamic_shapes=shapes, strict=strict).module()
    for length in (2, 15, 16, 40):
        x = torch.randn(3, length, 8)
        torch.testing.assert_close(program(x), module(x))
        x[0, 1] = torch.nan
        assert torch.equal(program(x).isnan(), module(x).isnan())


def test_random_layers_follow_the_generator_of_torch() -> None:
    module, x = nn.to_torch(nn.Sequential(nn.Dropout(0.5))), torch.ones(64)
    stream = ops.random.get_state()
    torch.manual_seed(0)
    first, second = module(x), module(x)
    torch.manual_seed(0)
    assert torch.equal(module(x), first)
    assert not torch.equal(first, second)
    assert ops.random.get_state() == stream
    # A call that draws nothing does not advance the generator.
    state = torch.get_rng_state()
    module.eval()(x)
    assert torch.equal(torch.get_rng_state(), state)
    module.train()
    with ops.random.stream(7):
        first = module(x)
    with ops.random.stream(7):
        assert torch.equal(module(x), first)
    different = torch.func.vmap(module, randomness="different")(torch.ones(2, 64))
    assert not torch.equal(different[0], different[1])


def test_compiled_and_exported_dropout_draws_in_every_call() -> None:
    with ember_ml.use_backend("torch"):
        module, x = nn.to_torch(nn.Sequential(nn.Dropout(0.5))), torch.ones(64)
        compiled = torch.compile(module, backend="eager", fullgraph=True)
        torch.manual_seed(0)
        first, second = compiled(x), compiled(x)
        torch.manual_seed(0)
        assert torch.equal(compiled(x), first)
        assert not torch.equal(first, second)
        program = torch.export.export(module, (x,)).module()
        assert not torch.equal(program(x), program(x))


@pytest.mark.parametrize("is_reentrant", [True, False])
def test_torch_checkpoint_repeats_dropout(is_reentrant: bool) -> None:
    module = nn.to_torch(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)))
    x = torch.ones(4, 8, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(module, x, use_reentrant=is_reentrant)
    y.sum().backward()
    # The gradient of the bias counts, twice, the elements that were kept.
    torch.testing.assert_close(getattr(module, "0").bias.grad, 2.0 * (y != 0).float().sum(0))


def test_layers_that_recompute_repeat_dropout() -> None:
    gradients = []
    for checkpoint in (False, True):
        ops.random.set_seed(0)
        module = nn.to_torch(nn.TransformerEncoder(1, 4, 2, 8, dropout=0.5, checkpoint=checkpoint))
        torch.manual_seed(0)
        module(torch.ones(2, 3, 4)).square().sum().backward()
        gradients.append([x.grad for x in module.parameters()])
    torch.testing.assert_close(*gradients)


def test_layers_cannot_be_replaced() -> None:
    module = nn.to_torch(small())
    other = T.Linear(5, 10)
    for change in (
        lambda: setattr(module, "3", other),
        lambda: module.add_module("3", other),
        lambda: module.register_module("4", other),
        lambda: setattr(getattr(module, "0"), "extra", other),
        lambda: setattr(module, "3", None),
        lambda: delattr(module, "3"),
    ):
        with pytest.raises(AttributeError, match=r"must stay those of the model, .*call to_torch again"):
            change()
    assert [name for name, _ in module.named_children()] == ["0", "1", "2", "3"]
    # Functions that replace some layers assign all of them.
    assert torch.nn.SyncBatchNorm.convert_sync_batchnorm(module) is module
    assert module.to(torch.float64)(torch.from_numpy(X).double()).shape == (6, 3)


def test_functions_that_look_for_classes_of_torch_find_none() -> None:
    module, x = nn.to_torch(small()), torch.from_numpy(X)
    averaged = torch.optim.swa_utils.AveragedModel(module)
    before = copy.deepcopy(averaged.module.state_dict())
    torch.optim.swa_utils.update_bn([x], averaged)
    torch.testing.assert_close(averaged.module.state_dict(), before, rtol=0, atol=0)
    # What the page says instead of update_bn.
    averaged.train()
    with torch.no_grad():
        for _ in range(200):
            averaged(x)
    layer, after = getattr(module, "0"), averaged.module.state_dict()
    torch.testing.assert_close(after["1.running_mean"], (x @ layer.weight + layer.bias).mean(0).detach())
    assert {name for name in before if not torch.equal(before[name], after[name])} == {
        "1.running_mean",
        "1.running_var",
    }


def test_parametrizations_apply_and_hooks_that_compute_weights_are_errors() -> None:
    module, x = nn.to_torch(nn.Sequential(nn.Linear(4, 3))).eval(), torch.from_numpy(X)
    layer, expected = getattr(module, "0"), module(x)
    torch.nn.utils.parametrizations.weight_norm(layer)
    torch.testing.assert_close(module(x), expected)
    module(x).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())
    with torch.no_grad():
        layer.parametrizations.weight.original0.mul_(2.0)
    assert not torch.allclose(module(x), expected)
    torch.testing.assert_close(copy.deepcopy(module)(x), module(x))
    with ember_ml.use_backend("torch"):
        torch.testing.assert_close(nn.from_torch(module)(x), module(x))
    torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    prune = pytest.importorskip("torch.nn.utils.prune")
    prune.random_unstructured(layer, "weight", 0.5)
    with pytest.raises(RuntimeError, match=r"'0.weight' must be a parameter of the module, .*prune.remove"):
        module(x)
    prune.remove(layer, "weight")
    assert module(x).shape == (6, 3)


def test_threads_call_one_module_at_the_same_time() -> None:
    with ember_ml.use_backend("torch"):
        module = nn.to_torch(nn.Sequential(*(nn.Linear(4, 4) for _ in range(8)))).eval()
        x = torch.from_numpy(X)
        expected = module(x)
        compiled = torch.compile(module, backend="eager", fullgraph=True)
        compiled(x)

    def call(function: Any) -> None:
        with ember_ml.use_backend("torch"):
            for _ in range(50):
                torch.testing.assert_close(function(x), expected)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(call, function) for function in (module, compiled, module, module)]:
            future.result()
    torch.testing.assert_close(pickle.loads(pickle.dumps(module))(x), expected)


def test_what_cannot_become_a_module_of_torch() -> None:
    with pytest.raises(TypeError, match=r"to_torch: model must be an ember_ml.nn.Module, got"):
        nn.to_torch(object())  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"must not be that of an attribute of torch.nn.Module, got 'half' in ModuleDict"
    ):
        nn.to_torch(nn.ModuleDict({"half": nn.Linear(1, 1)}))

    class Assigns(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter([1.0])

        def forward(self, x: Any) -> Any:
            self.weight = ops.multiply(self.weight, 2.0)
            return x

    with pytest.raises(RuntimeError, match="forward must not assign parameters, got another 'weight'"):
        nn.to_torch(Assigns())(torch.ones(1))


def test_a_lightning_style_loop_trains_it() -> None:
    class Task(torch.nn.Module):
        """What ``LightningModule`` asks for, with its loop below."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.to_torch(small())

        def training_step(self, batch: Any, index: int) -> Any:
            x, y = batch
            return torch.nn.functional.cross_entropy(self.net(x), y)

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), 0.1, momentum=0.9)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]

    task = Task()
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), 3)
    (optimizer,), (schedule,) = task.configure_optimizers()
    losses = []
    for _ in range(4):
        task.train()
        for i, batch in enumerate(data):
            loss = task.training_step(batch, i)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        task.eval()
    assert sum(losses[-2:]) < sum(losses[:2])
    assert "net.1.running_mean" in task.state_dict()


DDP = """
import sys, numpy as np, torch, torch.distributed as dist
from ember_ml import nn, ops
torch.set_num_threads(1)
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
ops.random.set_seed(rank)  # DDP gives all ranks the weights of rank 0
module = torch.nn.parallel.DistributedDataParallel(
    nn.to_torch(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm(5), nn.Tanh(), nn.Linear(5, 1)))
)
optimizer = torch.optim.SGD(module.parameters(), 0.1)
x = torch.linspace(-1, 1, 32).reshape(8, 4)[rank::2]
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = torch.square(module(x) - x.sum(1, keepdim=True)).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
parameters = torch.cat([p.detach().flatten() for p in module.parameters()])
both = [torch.empty_like(parameters) for _ in range(2)]
dist.all_gather(both, parameters)
assert torch.equal(*both)
assert module.module.state_dict()["1.running_mean"].abs().sum() > 0
print("trained", rank)
dist.destroy_process_group()
"""


def test_ddp_trains_it_on_two_processes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(DDP)
    command = [sys.executable, str(program)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    for rank, process in enumerate(ranks):
        out, err = process.communicate(timeout=120)
        assert out == f"trained {rank}\n", err


def image() -> Any:
    return torch.linspace(-1, 1, 2 * 4 * 8 * 8).reshape(2, 4, 8, 8)


T = torch.nn
LAYERS: dict[str, tuple[Any, Any]] = {
    "linear": (lambda: T.Linear(4, 3, bias=False), lambda: torch.ones(2, 4)),
    "mlp": (
        lambda: T.Sequential(
            T.Linear(4, 5), T.GELU("tanh"), T.LayerNorm(5), T.Dropout(0.1), T.RMSNorm(5, 1e-6), T.SiLU()
        ),
        lambda: torch.linspace(-1, 1, 8).reshape(2, 4),
    ),
    "cnn": (
        lambda: T.Sequential(
            T.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), groups=2),
            T.BatchNorm2d(6),
            T.LeakyReLU(0.2),
            T.MaxPool2d(2, 1, padding=1),
            T.GroupNorm(3, 6),
            T.ConvTranspose2d(6, 2, 3, stride=2, padding=1, output_padding=1),
            T.AvgPool2d(2, padding=1, count_include_pad=False),
            T.AdaptiveAvgPool2d((2, 1)),
            T.Flatten(),
            T.Linear(4, 2),
            T.LogSoftmax(-1),
        ),
        image,
    ),
    "conv1d": (
        lambda: T.Sequential(T.Conv1d(4, 3, 3, padding="same", dilation=2), T.Hardtanh(-2, 2), T.AdaptiveMaxPool1d(2)),
        lambda: image()[:, :, :, 0],
    ),
    "activations": (
        lambda: T.Sequential(
            *(
                T.ELU(0.5),
                T.SELU(),
                T.CELU(2.0),
                T.Mish(),
                T.Softplus(2.0),
                T.Softsign(),
                T.Hardswish(),
                T.Hardsigmoid(),
            ),
            *(
                T.PReLU(),
                T.Softshrink(0.1),
                T.Hardshrink(0.1),
                T.Tanhshrink(),
                T.LogSigmoid(),
                T.ReLU6(),
                T.GLU(),
                T.Softmax(1),
            ),
        ),
        lambda: torch.linspace(-3, 3, 8).reshape(2, 4),
    ),
    "embedding": (lambda: T.Sequential(T.Embedding(7, 4), T.Linear(4, 2)), lambda: torch.tensor([[1, 6], [0, 3]])),
    "lstm": (lambda: T.LSTM(4, 3, 2, bidirectional=True), lambda: torch.linspace(-1, 1, 24).reshape(3, 2, 4)),
    "gru": (lambda: T.GRU(4, 3, batch_first=True), lambda: torch.linspace(-1, 1, 24).reshape(3, 2, 4)),
    "rnn": (lambda: T.RNN(4, 3, nonlinearity="relu"), lambda: torch.linspace(-1, 1, 24).reshape(3, 2, 4)),
    "encoder": (
        lambda: T.TransformerEncoder(
            T.TransformerEncoderLayer(4, 2, 8, activation="gelu", batch_first=True, norm_first=True),
            2,
            T.LayerNorm(4),
            enable_nested_tensor=False,
        ),
        lambda: torch.linspace(-1, 1, 24).reshape(2, 3, 4),
    ),
    "encoder layer": (
        lambda: T.TransformerEncoderLayer(4, 2, 8, batch_first=True),
        lambda: torch.linspace(-1, 1, 24).reshape(2, 3, 4),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_torch_become_ours(name: str, backend: Backend) -> None:
    make, data = LAYERS[name]
    torch.manual_seed(0)
    module, x = make().eval(), data()
    stream = ops.random.get_state()
    model = nn.from_torch(module)
    assert ops.random.get_state() == stream
    assert (model.backend, model.training) == (backend.name, False)
    expected, found = module(x), model(ops.asarray(x.numpy()))
    if isinstance(expected, tuple):
        expected, found = expected[0], found[0]
    np.testing.assert_allclose(ops.to_numpy(found), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert model.count_parameters() == sum(p.numel() for p in module.parameters())


def test_attention_of_torch_becomes_ours(backend: Backend) -> None:
    q, k = torch.linspace(-1, 1, 24).reshape(2, 3, 4), torch.linspace(1, -1, 20).reshape(2, 5, 2)
    for module in (T.MultiheadAttention(4, 2, batch_first=True, kdim=2, vdim=2, bias=False).eval(),):
        expected, _ = module(q, k, k)
        found = nn.from_torch(module)(ops.asarray(q.numpy()), ops.asarray(k.numpy()))
        np.testing.assert_allclose(ops.to_numpy(found), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_decoder_layer_of_torch_becomes_ours() -> None:
    module = T.TransformerDecoderLayer(4, 2, 8, batch_first=True).eval().double()
    x, memory = torch.linspace(-1, 1, 24).reshape(2, 3, 4).double(), torch.linspace(1, -1, 16).reshape(2, 2, 4).double()
    with ember_ml.use_backend("torch"):
        found = nn.from_torch(module)(x, memory)
    expected = module(x, memory, T.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64))
    torch.testing.assert_close(found, expected)
    with ember_ml.use_backend("torch"):
        torch.testing.assert_close(nn.from_torch(module)(x, memory, is_causal=False), module(x, memory))


def test_shared_tied_and_frozen_parts_of_torch() -> None:
    shared = T.Linear(3, 3)
    module = T.Sequential(shared, T.ReLU(), shared, T.Linear(3, 3, bias=False), T.Sequential(T.Linear(3, 3)))
    module[3].weight = module[4][0].weight
    shared.bias.requires_grad_(False)
    module[1].eval()
    model = nn.from_torch(module)
    assert list(model.parameters()) == ["0.weight", "3.weight", "4.0.bias"]
    assert model[0] is model[2]
    assert (model.training, model[1].training) == (True, False)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(ops.to_numpy(model(x)), module(torch.ones(2, 3)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_every_part_without_a_counterpart_is_listed() -> None:
    class Net(T.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = T.Sequential(T.Linear(2, 2), T.Bilinear(2, 2, 2))
            self.pool = T.MaxPool2d(2, ceil_mode=True)
            self.attention = T.MultiheadAttention(4, 2)

    with pytest.raises(UnsupportedError) as caught:
        nn.from_torch(Net())
    lines = str(caught.value).splitlines()
    assert lines[0] == "from_torch: module must be made of layers that have a counterpart, got"
    assert lines[1:4] == [
        "  first.1: Bilinear: no such layer",
        "  pool: MaxPool2d: ceil_mode must be False, got True",
        "  attention: MultiheadAttention: batch_first must be True, got False",
    ]
    assert lines[4].startswith("  the module itself: Net: a class with a forward method of its own")
    hooked = T.Linear(2, 2)
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(UnsupportedError, match="it has forward hooks"):
        nn.from_torch(hooked)
    tied = T.Sequential(T.Embedding(3, 3), T.Linear(3, 3, bias=False))
    tied[1].weight = tied[0].weight
    with pytest.raises(
        UnsupportedError, match=r"0.weight and 1.weight: one parameter of layers whose weights have other"
    ):
        nn.from_torch(tied)
    with pytest.raises(TypeError, match=r"from_torch: module must be a torch.nn.Module, got"):
        nn.from_torch(nn.Linear(1, 1))


def test_parts_of_transformer_layers_are_those_that_torch_creates() -> None:
    class TransformerEncoderLayer(T.TransformerEncoderLayer):
        """A class with the name of torch's, and another result."""

        def forward(self, src: Any, *args: Any, **options: Any) -> Any:
            return src

    def layer(**options: Any) -> Any:
        return T.TransformerEncoderLayer(4, 2, 8, batch_first=True, **options)

    def changed(change: Any) -> Any:
        module = layer()
        change(module)
        return module

    for module, message in (
        (changed(lambda m: setattr(m.norm2, "eps", 0.5)), r"norm2 must be LayerNorm\(.*eps=1e-05.*, got .*eps=0.5"),
        (changed(lambda m: setattr(m, "norm1", T.Identity())), "norm1 must be of the class LayerNorm, got Identity"),
        (
            changed(lambda m: setattr(m, "linear1", T.Sequential(m.linear1))),
            "linear1 must be .* got Sequential",
        ),
        (changed(lambda m: setattr(m.dropout1, "p", 0.5)), r"dropout1 must be Dropout\(p=0.1.*, got Dropout\(p=0.5"),
        (changed(lambda m: setattr(m.self_attn, "dropout", 0.5)), r"self_attn.dropout must be 0.1, .*, got 0.5"),
        (changed(lambda m: T.utils.parametrizations.weight_norm(m.linear2)), "linear2 must be .*, got Parametrized"),
        (changed(lambda m: m.linear2.register_forward_hook(lambda *args: None)), "it has forward hooks"),
        (
            T.TransformerEncoder(layer(norm_first=True, bias=False), 1, T.LayerNorm(4), enable_nested_tensor=False),
            r"its norm must be LayerNorm\(.*bias=False\), like those of its layers, got LayerNorm",
        ),
        (
            T.TransformerEncoder(TransformerEncoderLayer(4, 2, 8, batch_first=True), 1),
            "its layers must be those of torch",
        ),
    ):
        with pytest.raises(UnsupportedError, match=message):
            nn.from_torch(module)


def test_wrapped_modules_and_subclasses_say_what_to_do() -> None:
    class Wrapper(T.Module):
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

    class OwnLinear(T.Linear):
        pass

    ours = "the result of to_torch inside another module; call from_torch on it"
    module = nn.to_torch(small())
    for wrapped, line in (
        (T.Sequential(module, T.ReLU()), f"  0: Adapter: {ours}"),
        (Wrapper(module), f"  module: Adapter: {ours}"),
        (torch.compile(module, backend="eager"), f"  _orig_mod: Adapter: {ours}"),
        (
            torch.compile(T.Sequential(T.ReLU()), backend="eager"),
            "  the module itself: OptimizedModule: a wrapper; call from_torch on its part _orig_mod",
        ),
        (
            OwnLinear(1, 1),
            "  the module itself: OwnLinear: a subclass of Linear, which may compute something else; use Linear "
            "itself, or write it with the layers of ember_ml.nn, and load its weights with load_torch_state_dict",
        ),
        (
            T.utils.parametrizations.weight_norm(T.Linear(1, 1)),
            "  the module itself: ParametrizedLinear: it has parametrizations; "
            "torch.nn.utils.parametrize.remove_parametrizations makes them permanent",
        ),
    ):
        with pytest.raises(UnsupportedError) as caught:
            nn.from_torch(wrapped)
        assert str(caught.value).splitlines()[1:] == [line]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (T.BatchNorm1d(2, momentum=None), "momentum must be a number"),
        (T.BatchNorm1d(2, track_running_stats=False), "track_running_stats must be True"),
        (T.Embedding(3, 2, padding_idx=0), "padding_idx must be None"),
        (T.Conv1d(1, 1, 2, padding_mode="reflect"), "padding_mode must be 'zeros'"),
        (T.AvgPool1d(2, padding=1), "count_include_pad must be False"),
        (T.MaxPool1d(2, dilation=2), "dilation must be 1"),
        (T.AdaptiveAvgPool2d((None, 2)), "output_size must be integers"),
        (T.Flatten(0, 1), "end_dim must be -1"),
        (T.LSTM(2, 3, proj_size=1), "proj_size must be 0"),
        (T.RMSNorm(2), "eps must be a number"),
        (T.Softmax(), "dim must be an integer"),
        (T.PReLU(3), "num_parameters must be 1"),
        (T.Dropout2d(), "no such layer"),
        (T.TransformerEncoderLayer(2, 1, 2), "batch_first must be True"),
        (
            T.TransformerEncoderLayer(2, 1, 2, batch_first=True, activation=torch.tanh),
            "activation must be relu or gelu",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_options_without_a_counterpart(module: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        nn.from_torch(module)
