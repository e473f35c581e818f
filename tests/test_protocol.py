"""What an engine is: the protocols have what the library uses, our engines meet them, and what is missing is named."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from example_engine import environment, install

import ember_ml
from ember_ml.backend import Backend, protocol, submodule
from ember_ml.backend.protocol import (
    Control,
    ControlOptions,
    Core,
    CoreOptions,
    HostRandom,
    Optim,
    Random,
    Transform,
    TransformOptions,
    members,
)

PACKAGE = Path(ember_ml.__file__).parent
SOURCES = [
    path for path in PACKAGE.rglob("*.py") if not {"testing", "tools"} & set(path.relative_to(PACKAGE).parts[:1])
]
ABOVE = "\n".join(
    path.read_text(encoding="utf-8") for path in SOURCES if path.relative_to(PACKAGE).parts[:2] not in
    {("backend", name) for name in ("numpy", "torch", "mlx", "autograd", "protocol.py")}
)  # fmt: skip

# What samplers use where the values are known, which is NumPy's alone.
OF_THE_HOST = {"merged"}

# The operation ``interp`` has a parameter named ``xp``.
OF_INTERP = {"shape", "ndim"}

PARTS = {
    "core": (Core, CoreOptions),
    "random": (Random, HostRandom),
    "transform": (Transform, TransformOptions),
    "control": (Control, ControlOptions),
    "optim": (Optim,),
}


def used(pattern: str) -> set[str]:
    """The names that the library uses of an engine, outside of the engines."""
    return set(re.findall(pattern, ABOVE))


def test_the_protocol_of_core_is_what_is_used() -> None:
    # The table of older names has files ``core.py``.
    assert used(r"\bcore\.([a-zA-Z]\w*)") - {"text", "py"} == set(members(Core)) | {"implementation"}
    assert used(r'[gh](?:et|as)attr\((?:backend\.)?core, "([a-zA-Z]\w*)"') == set(members(CoreOptions))


def test_the_protocol_of_random_is_what_is_used() -> None:
    assert used(r"\b(?:xp|(?:home|backend)\.random)\.([a-zA-Z]\w*)") - OF_THE_HOST - OF_INTERP == set(members(Random))


def test_the_protocol_of_transform_is_what_is_used() -> None:
    options = used(r'[gh](?:et|as)attr\((?:self\.|call\.)?engine, "(\w+)"') | {"whole"}
    known = used(r"\b(?<!optim\.)(?:call|self)\.engine\.(\w+)") | used(r"\bengine\.((?:compiled|is_|stop_)\w*)\(")
    assert known | options == set(members(Transform)) | set(members(TransformOptions))
    assert set(members(Transform)) <= known
    assert set(members(Transform)).isdisjoint(options)


def test_the_protocol_of_control_is_what_is_used() -> None:
    known = used(r"\bbackend\.control\.(\w+)") | used(r'backend\.control, "(\w+)"')
    assert known == set(members(Control)) | set(members(ControlOptions))


@pytest.mark.parametrize("part", PARTS)
def test_engines_have_the_parameters_of_the_protocols(backend: Backend, part: str) -> None:
    module = submodule(backend.module, part)
    if module is None:
        assert part == "optim"
        assert backend.name in ("mlx", "jax")
        return
    for kind in PARTS[part]:
        if kind in (Core, Transform, Random) and not (backend.is_host and kind is Random):
            assert protocol.lacking(module, kind) == []
        for name in members(kind):
            declared, found = inspect.getattr_static(kind, name), getattr(module, name, None)
            if inspect.isfunction(declared) and inspect.isfunction(found):
                required = [p for p in inspect.signature(declared).parameters.values() if p.default is p.empty]
                inspect.signature(found).bind(*required[1:])


def program(site: Path, text: str) -> str:
    """The last line that a program prints or raises where the example engine is installed."""
    done = subprocess.run(
        [sys.executable, "-c", f"import ember_ml\nfrom ember_ml import ops\n{text}"],
        env=environment(site), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return (done.stdout + done.stderr).rstrip().splitlines()[-1]


def test_random_numbers_that_lack_a_function_are_named(tmp_path: Path) -> None:
    engine = install(tmp_path)
    (engine / "random.py").write_text("from ember_ml.backend.numpy.random import *\ndel cast\n")
    said = program(tmp_path, "ember_ml.set_backend('abacus')")
    wanted = "set_backend: the abacus backend must import, got AttributeError: abacus.random must define "
    assert said.startswith(f"ember_ml.errors.BackendNotFoundError: {wanted}cast, pair_of, cumprod;")


def test_transforms_that_lack_a_function_are_named(tmp_path: Path) -> None:
    engine = install(tmp_path)
    (engine / "transform.py").write_text("def vjp(f, tensors): ...\n")
    use = "ember_ml.set_backend('abacus'); x = ops.add(1.0, 2.0)\n"
    wanted = "TypeError: grad: abacus.transform must define value_and_grad, jvp, remembered, ruled"
    assert program(tmp_path, use + "ember_ml.grad(lambda x: x)(x)") == wanted


@pytest.mark.parametrize(
    "call", ["normal((2,))", "uniform(3, key=7)", "split(7)", "key(7)", "Generator(7).normal((2,))"]
)
def test_without_random_numbers(call: str, tmp_path: Path) -> None:
    install(tmp_path)
    said = program(tmp_path, f"ember_ml.set_backend('abacus')\nops.random.{call}")
    wanted = "MissingOperationError: the abacus backend has no random numbers: there is no module abacus.random"
    assert wanted in said or said.startswith("in ember_ml.ops.random_")


@pytest.mark.parametrize("name", ["grad", "vmap", "checkpoint", "compile"])
def test_without_transforms(name: str, tmp_path: Path) -> None:
    install(tmp_path)
    use = "ember_ml.set_backend('abacus'); x = ops.add([1.0], 2.0)\n"
    said = program(tmp_path, use + f"ember_ml.{name}(lambda x: x)(x)")
    wanted = f"the abacus backend has no {name}: there is no module abacus.transform"
    assert said == f"ember_ml.errors.MissingOperationError: {wanted}"


def test_an_engine_without_control_flow_of_its_own(tmp_path: Path) -> None:
    install(tmp_path)
    use = "ember_ml.set_backend('abacus')\nprint(ops.cond(True, lambda x: ops.add(x, x), lambda x: x, 2.0).tolist())"
    assert program(tmp_path, use) == "4.0"
