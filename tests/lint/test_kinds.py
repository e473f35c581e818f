"""Type inference by annotation, call, assignment and control flow; no findings on unknown values."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from emberlint import config as configuration
from emberlint.config import Config
from emberlint.inference import traversal
from emberlint.inference.state import State
from emberlint.lint import linter
from emberlint.lint.selection import checks_for, selected
from emberlint.source.text import Source
from emberlint.source.tree import parse

ROOT = Path(__file__).parent.parent.parent
HEAD = """
import math
import jax.numpy as jnp
import mlx.core as mx
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, Tensor
from ember_ml import ops
from ember_ml.ops import linearalg, stats as st
"""


def kind_of(body: str, parameters: str = "", name: str = "y") -> str:
    """Kind and engine of the last read of a name in a function's body; ``?`` if unknown."""
    text = (
        HEAD + f"def f({parameters}):\n" + textwrap.indent(textwrap.dedent(body), "    ") + f"\n    shown({name}, np)\n"
    )
    source = Source(text.encode())
    file = State(source, parse(source), Config(), thorough=True)
    traversal.run(file)
    line = source.data.count(b"\n")
    for node, value in reversed(file.known.items()):
        if node.lineno == line and file.text(node) == name:  # type: ignore[attr-defined]
            return " ".join(part for part in (value.kind, value.engine) if part)
    return "?"


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("np.zeros(3)", "host numpy"),
        ("np.linalg.norm(x)", "host numpy"),
        ("np.asarray(x)[0]", "host numpy"),
        ("np.zeros(3).shape", "shape"),
        ("np.zeros(3).shape[0]", "scalar"),
        ("np.zeros(3).sum(axis=0).T", "host numpy"),
        ("np.shape(x)", "shape"),
        ("np.ndim(x)", "scalar"),
        ("np.prod(np.zeros(3).shape)", "scalar"),
        ("np.sqrt(2.0)", "scalar"),
        ("np.array_equal(x, x)", "scalar"),
        ("np.random.default_rng(0).normal(size=3)", "host numpy"),
        ("np.unique(x)", "host numpy"),
        ("np.unique(x, return_counts=True)", "sequence"),
        ("np.where(x)", "sequence"),
        ("np.errstate()", "?"),
        ("np.load(x)", "?"),
        ("torch.zeros(3)", "tensor torch"),
        ("torch.zeros(3).to('cpu').sum()", "tensor torch"),
        ("torch.max(torch.zeros(3), dim=0)", "sequence"),
        ("torch.zeros(3).max(dim=0)", "sequence"),
        ("torch.zeros(3).max()", "tensor torch"),
        ("torch.zeros(3).size()", "shape"),
        ("torch.zeros(3).size(0)", "scalar"),
        ("torch.zeros(3).item()", "scalar"),
        ("torch.zeros(3).numpy()", "host numpy"),
        ("torch.is_tensor(x)", "scalar"),
        ("F.relu(x)", "tensor torch"),
        ("nn.Linear(2, 3)(x)", "tensor torch"),
        ("mx.zeros(3) + x", "tensor mlx"),
        ("jnp.zeros(3) > 0", "tensor jax"),
        ("ops.sum(x)", "tensor ember"),
        ("linearalg.norm(x)", "tensor ember"),
        ("st.mean(x)", "tensor ember"),
        ("ops.shape(x)", "shape"),
        ("ops.to_numpy(x)", "host numpy"),
        ("ops.split(x, 2)", "sequence"),
        ("ops.split(x, 2)[0]", "tensor ember"),
        ("ops.nothing_of_the_kind(x)", "?"),
        ("math.sqrt(2)", "scalar"),
        ("len(x)", "scalar"),
        ("float(torch.zeros(3))", "scalar"),
        ("abs(torch.zeros(3))", "tensor torch"),
        ("max(1, 2)", "scalar"),
        ("max(1, x)", "?"),
        ("max(np.zeros(3).shape)", "scalar"),
        ("sum(np.zeros(3))", "host numpy"),
        ("sum([torch.zeros(3), torch.ones(3)])", "tensor torch"),
        ("min([torch.zeros(3)], [torch.ones(3)])", "?"),
        ("-np.zeros(3)", "host numpy"),
        ("not np.zeros(3)", "scalar"),
        ("x", "?"),
        ("x + 1", "?"),
        ("x.sum()", "?"),
        ("x.shape", "?"),
        ("np.zeros(3) * x", "host numpy"),
        ("np.zeros(3) + torch.zeros(3)", "tensor torch"),
        ("[ops.exp(a) for a in x]", "sequence"),
        ("np.zeros(3) if x else np.ones(3)", "host numpy"),
        ("np.zeros(3) if x else 1", "?"),
        ("(lambda z: z)(x)", "?"),
        ("(1, 2) + np.zeros(3).shape", "shape"),
    ],
)
def test_expressions(expression: str, kind: str) -> None:
    assert kind_of(f"y = {expression}", "x") == kind


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ("np.ndarray", "host numpy"),
        ("'torch.Tensor'", "tensor torch"),
        ("Tensor", "tensor torch"),
        ("Tensor | None", "tensor torch"),
        ("list[Tensor]", "sequence"),
        ("tuple[int, ...]", "shape"),
        ("int", "scalar"),
        ("mx.array", "tensor mlx"),
        ("np.ndarray | list", "?"),
        ("object", "?"),
        ("'not ( python'", "?"),
    ],
)
def test_annotations(annotation: str, kind: str) -> None:
    assert kind_of("pass", f"y: {annotation}") == kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("if x:\n    y = np.zeros(3)\nelse:\n    y = np.ones(3)", "host numpy"),
        ("if x:\n    y = np.zeros(3)\nelse:\n    y = 1", "?"),
        ("if x:\n    y = 1\n    return\ny = np.zeros(3)", "host numpy"),
        ("y = x\nif not isinstance(y, np.ndarray):\n    y = np.asarray(y)", "host numpy"),
        ("y = x\nif not isinstance(y, torch.Tensor):\n    raise TypeError", "tensor torch"),
        ("y = x\nassert isinstance(y, torch.Tensor)", "tensor torch"),
        ("y = None\nif x:\n    y = np.zeros(3)", "host numpy"),
        ("for y in np.zeros((3, 3)):\n    break", "?"),
        ("y = 0\nfor i in x:\n    y = y + np.zeros(3)", "?"),
        ("y = np.zeros(3)\nfor i in x:\n    y = y + 1", "host numpy"),
        ("y = np.zeros(3)\nwhile x:\n    y += 1", "host numpy"),
        ("try:\n    y = np.zeros(3)\nexcept ValueError:\n    y = None", "host numpy"),
        ("try:\n    y = np.zeros(3)\nexcept ValueError:\n    y = x", "?"),
        ("match x:\n    case 1:\n        y = np.zeros(3)\n    case y:\n        y = 2", "?"),
        ("a, y = x, np.zeros(3)", "host numpy"),
        ("a, *y = np.zeros(3)", "?"),
        ("with torch.no_grad():\n    y = torch.zeros(3)", "tensor torch"),
        ("(y := np.zeros(3))", "host numpy"),
        ("y = np.zeros(3)\ndel y", "?"),
        ("def inner():\n    return np.zeros(3)\ny = inner()", "host numpy"),
        ("def inner(n):\n    return inner(n - 1) if n else np.zeros(3)\ny = inner(3)", "?"),
        ("def inner():\n    yield np.zeros(3)\ny = inner()", "?"),
        ("def inner() -> np.ndarray:\n    return x\ny = inner()", "host numpy"),
        ("async def inner() -> np.ndarray:\n    return x\ny = inner()", "?"),
        ("q = np\ny = q.zeros(3)", "host numpy"),
        ("np = x\ny = np.zeros(3)", "?"),
        ("from numpy import zeros as z\ny = z(3)", "host numpy"),
        ("y = np.zeros(3)\ny = x", "?"),
    ],
)
def test_flow(body: str, kind: str) -> None:
    assert kind_of(body, "x") == kind


def test_attributes_of_the_instance() -> None:
    text = HEAD + textwrap.dedent(
        """
        class Layer(nn.Module):
            def forward(self, x):
                return self.dense(x) + self.scale, self.other

            def __init__(self):
                self.dense = nn.Linear(2, 3)
                self.scale = torch.ones(3)
                self.other = torch.ones(3)

            def reset(self, value):
                self.other = value
        """
    )
    source = Source(text.encode())
    file = State(source, parse(source), Config(), thorough=True)
    traversal.run(file)
    known = {file.text(node): value.kind for node, value in file.known.items()}
    assert known["self.scale"] == "tensor"
    assert known["self.dense(x) + self.scale"] == "tensor"


def test_a_namespace_of_the_project_means_operations() -> None:
    source = Source(b"from shop import ops\nfrom .ops import total\ny = ops.sum([1])\nz = total(y)\n")
    config = Config(namespace="shop.ops")
    file = State(source, parse(source), config, module="shop.use", package="shop", thorough=True)
    traversal.run(file)
    known = {file.text(node): value for node, value in file.known.items()}
    assert known["ops.sum([1])"].engine == "ember"
    assert known["total"].path == "ember_ml.ops.total"


def test_reasons_lead_to_the_origin() -> None:
    source = Source(b"import numpy as np\nx = np.zeros(3)\ny = (x + 1).T\n")
    file = State(source, parse(source), Config(), thorough=True)
    traversal.run(file)
    value = next(value for node, value in file.known.items() if file.text(node) == "(x + 1).T")
    assert file.reasons(value) == (
        "line 3: `(x + 1).T` is an attribute of a tensor: NumPy array",
        "line 3: `x + 1` is computed from a tensor: NumPy array",
        "line 2: `np.zeros(3)` is the result of this call: NumPy array",
    )


def test_a_long_way_from_the_origin_is_told_in_part() -> None:
    source = Source(b"import numpy as np\nx = np.zeros(3)\n" + b"x = np.exp(x)\n" * 40 + b"y = x.T\n")
    file = State(source, parse(source), Config(), thorough=True)
    traversal.run(file)
    value = next(value for node, value in file.known.items() if file.text(node) == "x.T")
    assert len(file.reasons(value)) == 24


@pytest.mark.parametrize("folder", ["ember_ml/ops", "ember_ml/backend", "tests/lint/fixtures"])
def test_skipped_statements_have_no_findings(folder: str) -> None:
    codes = selected(Config(select=("ALL",)))
    for path in sorted((ROOT / folder).rglob("*.py")):
        source = Source(path.read_bytes(), str(path))
        where = path.relative_to(ROOT).as_posix()
        layer = configuration.layer(where, Config())
        checks = checks_for(codes, where, layer is None)
        try:
            fast, thorough = (
                traversal.run(
                    State(
                        source,
                        parse(source),
                        Config(),
                        checks,
                        where=where,
                        engines=layer,
                        thorough=thorough,
                    )
                )
                for thorough in (False, True)
            )
        except SyntaxError:
            continue
        assert [(f.code, f.line) for f in fast] == [(f.code, f.line) for f in thorough], path


def test_a_message_is_one_line() -> None:
    data = b"import numpy as np\n\nx = (np.\n     pi)\n"
    messages = [finding.message for finding in linter.lint(data, "m.py", Config(select=("EMB103",))).findings]
    assert messages == ["`np. pi` belongs to numpy; use `ops.pi`"]


def kind_in(text: str, name: str, module: str = "") -> str:
    """Kind and engine of the last read of a name in a module; ``?`` if unknown."""
    source = Source(textwrap.dedent(text).encode())
    package = module.rpartition(".")[0]
    file = State(source, parse(source), Config(), module=module, package=package, thorough=True)
    traversal.run(file)
    for node, value in reversed(file.known.items()):
        if file.text(node) == name:
            return " ".join(part for part in (value.kind, value.engine) if part)
    return "?"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        # OpenVINO's tensors are buffers that are filled through NumPy; those of CUTLASS exist only in its compiler.
        ("import openvino as ov\nt = ov.Tensor(kind, shape)\nshown(t)", "t"),
        ("import openvino as ov\nt = ov.Tensor(kind, shape)\nshown(t.data)", "t.data"),
        ("from cutlass import cute\ndef f(m: cute.Tensor):\n    return shown(m)", "m"),
        ("import openvino as ov\ndef f(m):\n    assert isinstance(m, ov.Tensor)\n    return shown(m)", "m"),
        ("import numpy as np\nx = np.zeros(3)\nshown(x.data)", "x.data"),
        ("import numpy as np\nx = memoryview(np.zeros(3))\nshown(x)", "x"),
        ("import torch\nx = torch.zeros(3).untyped_storage()\nshown(x)", "x"),
        ("import torch\nx = torch.UntypedStorage(3)\nshown(x)", "x"),
    ],
)
def test_buffers_of_other_libraries_are_not_tensors(text: str, name: str) -> None:
    assert kind_in(text, name) == "?"


def test_tensors_of_the_file_s_own_package_are_tensors() -> None:
    text = "from shop.types import Tensor\nimport numpy\ndef f(x: Tensor):\n    return shown(x)"
    assert kind_in(text, "x", "shop.ops.math") == "tensor ember"
    assert kind_in(text, "x", "other.ops.math") == "?"
    relative = "from ..types import Tensor\ndef f(x: Tensor):\n    return shown(x)"
    assert kind_in(relative, "x", "shop.ops.math") == "tensor ember"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return x.shape, shown(x, torch)", "tensor torch"),
        ("return x.dtype, isinstance(x, torch.Tensor), shown(x, torch)", "tensor torch"),
        ("return x.dtype, isinstance(x, torch.TypedStorage), shown(x, torch)", "?"),
        ("return x.dtype, isinstance(x, (torch.Tensor, torch.UntypedStorage)), shown(x, torch)", "?"),
        ("return x.shape, isinstance(x, memoryview), shown(x, torch)", "?"),
        ("return x.shape, x.release(), shown(x, torch)", "?"),
        ("return x.ndim, x.typecode, shown(x, torch)", "?"),
        ("return x.shape, x.indptr, shown(x, torch)", "?"),
        ("return x.shape, x.iloc[0], shown(x, torch)", "?"),
        ("return x.shape, x._version, shown(x, torch)", "tensor torch"),
        ("return x.shape, other.release(), shown(x, torch)", "tensor torch"),
    ],
)
def test_parameters_used_as_arrays_are_arrays(body: str, kind: str) -> None:
    assert kind_in(f"import torch\ndef f(x):\n    {body}\n", "x") == kind


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("ndarray", "host numpy"),
        ("np.ndarray of shape (3,)", "host numpy"),
        ("numpy.ndarray", "host numpy"),
        ("array, shape (3,)", "host numpy"),
        ("array.array", "?"),
        ("pyarrow.Array", "?"),
        ("ctypes array", "?"),
        ("typed memoryview or ndarray", "?"),
        ("array or buffer", "?"),
        ("array-like", "?"),
    ],
)
def test_parameters_documented_as_arrays_are_arrays(written: str, kind: str) -> None:
    text = f'import numpy as np\ndef f(x):\n    """A function.\n\n    x : {written}\n    """\n    return shown(x, np)\n'
    assert kind_in(text, "x") == kind


def test_the_truth_value_of_a_condition_is_that_of_its_last_operand() -> None:
    """The other operands are tested separately, so each tensor is reported once, where it is."""
    source = textwrap.dedent("""
        import torch
        def f(x: torch.Tensor, a: int, b: int):
            if a and b and x: ...
            if a and x and b: ...
            if x or a or b: ...
            while not (a or b or x): ...
    """).encode()
    found = linter.lint(source, "m.py", Config(select=("EMB203",))).findings
    assert [finding.line for finding in found] == [4, 5, 6, 7]


@pytest.mark.parametrize("engine", ["", "import torch\n", "from ember_ml import ops\n"])
def test_arrays_known_by_annotation_are_found_next_to_other_imports(engine: str) -> None:
    source = f"{engine}from keras import KerasTensor\ndef f(x: KerasTensor):\n    return float(x)\n".encode()
    assert [finding.code for finding in linter.lint(source, "m.py", Config(select=("EMB201",))).findings] == ["EMB201"]
