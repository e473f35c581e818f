"""A package on top of the library, checked by mypy and pyright from outside: the types that they must find."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Each comment is the type that a checker must reveal there; the last part of a dotted name counts.
CONSUMER = '''
"""A library on top of Ember ML."""
import ember_ml
from ember_ml import nn, ops, optim, training
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor, asarray, fft, linalg, zeros
from ember_ml.types import Tensor, TensorLike


def product(x: Tensor, y: Tensor) -> Tensor:
    reveal_type(2 * x)  # Tensor
    reveal_type(x @ y)  # Tensor
    reveal_type(x[0])  # Tensor
    reveal_type(x < y)  # Tensor
    reveal_type(x == y)  # Tensor
    reveal_type(-x)  # Tensor
    reveal_type(x.shape)  # tuple[int, ...]
    reveal_type([row for row in x])  # list[Tensor]
    return x * y


def energy(x: TensorLike) -> Tensor:
    reveal_type(ops.add(x, 1) + 1)  # Tensor
    reveal_type(ops.shape(x))  # tuple[int, ...]
    reveal_type(ops.split(x, 2))  # list[Tensor]
    return ops.sum(x) ** 2


energy(1.0), energy([[1, 2], [3, 4]]), energy(EmberTensor([1.0])), product(EmberTensor([1.0]), ops.ones(1))
reveal_type(EmberTensor([1.0]) + 1)  # EmberTensor
reveal_type(EmberTensor([1.0])[0] == 1)  # EmberTensor
reveal_type(EmberTensor([1.0]).shape)  # tuple[int, ...]
reveal_type(EmberTensor([1.0]).dtype)  # EmberDType


def scaled(x: EmberTensor) -> EmberTensor:
    x += 1
    quotient, rest = divmod(x, 2)
    return -(2 * x[1:] + quotient.T @ rest - asarray([1.0])).reshape(2, 1)


def axes(x: EmberTensor) -> int:
    return tensor.add(linalg.inv(x), fft.fftfreq(4)).ndim + zeros(3).ndim + next(iter(x)).ndim


def text(x: EmberTensor) -> str:
    return x * 2  # wrong: it is an EmberTensor


class Net(nn.Module):
    def __init__(self) -> None:
        self.linear = nn.Linear(2, 1)
        self.scale = nn.Parameter([1.0])

    def forward(self, x: TensorLike) -> Tensor:
        reveal_type(self.linear(x))  # Tensor
        reveal_type(self.scale * 2)  # Tensor
        return self.linear(x) * self.scale


net = Net()
reveal_type(net([[1.0, 2.0]]))  # Tensor
reveal_type(net.parameters())  # dict[str, Tensor]
optimizer = optim.Adam(0.01)
trainer = training.Trainer(net, optimizer=optimizer, loss="mse")
reveal_type(trainer.fit([[1.0, 2.0]], [[1.0]], epochs=1))  # History
reveal_type(ember_ml.compile(energy)([1.0]))  # Tensor
net()  # wrong: forward has a parameter
ops.add("x", 1).missing  # wrong: tensors have no such attribute
'''.lstrip()

LINES = CONSUMER.splitlines()
EXPECTED = {n: line.partition("# ")[2] for n, line in enumerate(LINES, 1) if line.lstrip().startswith("reveal_type")}
WRONG = {n for n, line in enumerate(LINES, 1) if "# wrong" in line}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The source of the consumer, in a folder without the settings of this repository."""
    path = tmp_path / "consumer.py"
    path.write_text(CONSUMER, encoding="utf-8")
    return path


def check(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT), "NO_COLOR": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)
    assert ran.returncode == 1, ran.stdout + ran.stderr  # for the lines that are wrong, and no others
    return ran.stdout


def test_mypy_finds_the_types(package: Path) -> None:
    cache = ROOT / ".mypy_cache" / "consumer"
    out = check(
        [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={cache}", "--no-error-summary", package.name],
        package.parent,
    )
    found = re.findall(r'^consumer\.py:(\d+): note: Revealed type is "(.*)"$', out, re.MULTILINE)
    assert {int(n): re.sub(r"(\w+\.)+(?=\w)|builtins\.", "", kind) for n, kind in found} == EXPECTED, out
    assert {int(n) for n in re.findall(r"^consumer\.py:(\d+): error:", out, re.MULTILINE)} == WRONG, out
    assert "ember_ml/" not in out, out


def test_pyright_finds_the_types(package: Path) -> None:
    pytest.importorskip("pyright", reason="pyright is not installed")
    settings = {"include": [package.name], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    settings |= {"reportUnusedExpression": False}
    (package.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    try:
        subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, check=True, timeout=60)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"pyright does not start here: it needs Node.js, or a network to fetch it ({error})")
    out = check([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"], package.parent)
    findings = json.loads(out)["generalDiagnostics"]
    revealed = {
        one["range"]["start"]["line"] + 1: re.search(r'is "(.*)"$', one["message"])[1]
        for one in findings
        if one["severity"] == "information"
    }
    assert revealed == EXPECTED
    wrong = [(one["range"]["start"]["line"] + 1, one["message"]) for one in findings if one["severity"] == "error"]
    assert {line for line, _ in wrong} == WRONG, wrong
