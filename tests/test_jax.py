"""What JAX alone has: 64-bit dtypes that it must be told to have, tracers, memory that compiled steps take over."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import compile, grad, nn, ops, optim, value_and_grad, vmap

jax = pytest.importorskip("jax", reason="an optional engine")
jnp = pytest.importorskip("jax.numpy", reason="an optional engine")


@pytest.fixture(autouse=True)
def _on_jax() -> None:
    ember_ml.set_backend("jax")


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own."""
    environment = {**os.environ, "EMBER_ML_BACKEND": "jax", **variables}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


class TestWidth:
    def test_64_bits_are_on(self) -> None:
        assert jax.config.jax_enable_x64
        assert ops.asarray(2**40).item() == 2**40
        assert ops.asarray(np.ones(2)).dtype == np.float64
        assert ops.asarray(0.5).dtype == np.float32
        assert ops.argmax(ops.asarray([1.0, 2.0])).dtype == np.int64

    def test_they_can_be_left_off(self) -> None:
        done = run(
            "import numpy as np, jax, ember_ml\n"
            "from ember_ml import ops\n"
            "assert ops.add(ops.asarray([1.0]), 1.0).tolist() == [2.0]\n"
            "assert not jax.config.jax_enable_x64\n"
            "for call in (lambda: ops.asarray(np.ones(2)), lambda: ops.zeros(2, dtype='int64'),\n"
            "             lambda: ops.argmax(ops.asarray([1.0]))):\n"
            "    try:\n"
            "        call()\n"
            "    except ember_ml.UnsupportedError as error:\n"
            "        print(error)\n"
            "    else:\n"
            "        raise SystemExit('it was narrowed')\n",
            EMBER_ML_JAX_X64="0",
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("64") >= 3

    def test_a_user_who_turned_them_off_is_warned(self) -> None:
        done = run("from ember_ml import ops; print(ops.zeros(2, dtype='float64').dtype)", JAX_ENABLE_X64="0")
        assert (done.returncode, done.stdout) == (0, "float64\n"), done.stderr
        assert done.stderr.count("JAX_ENABLE_X64 turns off 64-bit dtypes") == 1

    def test_info_says_whether_they_are_on(self) -> None:
        assert backends.load("jax").settings() == ["64-bit dtypes on"]


class TestTransformsOfJAX:
    """Operations inside of transforms that the user takes from JAX."""

    def test_jit_grad_and_vmap(self) -> None:
        x = ops.asarray([[1.0, 2.0], [3.0, 4.0]])
        found = jax.jit(jax.vmap(jax.grad(lambda row: ops.sum(ops.softmax(ops.square(row)) * row))))(x)
        assert np.allclose(found, vmap(grad(lambda row: ops.sum(ops.softmax(ops.square(row)) * row)))(x), atol=1e-6)

    def test_numbers_and_lists_are_constants(self) -> None:
        assert jax.jit(lambda x: ops.add(ops.multiply(x, 2), [1.0, 2.0]))(jnp.ones(2)).tolist() == [3.0, 4.0]

    def test_out_of_range_indices_are_clamped_where_nothing_can_be_raised(self) -> None:
        x = ops.asarray([1.0, 2.0, 3.0])
        with pytest.raises(IndexError):
            ops.take(x, ops.asarray([7]))
        assert jax.jit(lambda x, i: ops.take(x, i))(x, ops.asarray([7])).tolist() == [3.0]

    def test_matrices_that_cannot_be_factored_are_nan_where_nothing_can_be_raised(self) -> None:
        x = ops.asarray([[1.0, 2.0], [2.0, 1.0]])
        with pytest.raises(ember_ml.LinAlgError):
            ops.cholesky(x)
        assert np.isnan(jax.jit(ops.cholesky)(x)).any()


class TestErrors:
    def test_reading_values_in_compiled_code(self) -> None:
        @compile
        def f(x):
            return x if x[0] > 0 else -x

        with pytest.raises(TypeError, match=r"compile: a function must not read the values .* ops\.cond") as caught:
            f(ops.asarray([1.0]))
        assert isinstance(caught.value.__cause__, jax.errors.TracerBoolConversionError)
        assert not getattr(caught.value, "__notes__", [])

    def test_no_notes_about_frames_of_jax(self) -> None:
        with pytest.raises(ValueError, match="add: the shapes of x and y must broadcast") as caught:
            ops.add(ops.ones(2), ops.ones(3))
        assert caught.value.__notes__ == ["in ember_ml.ops.add(float32[2], float32[3]) on the jax backend"]


class TestMemory:
    """Compiled steps take over the memory of what they replace, unless something else holds it."""

    def model(self) -> tuple[nn.Module, optim.Optimizer]:
        model = nn.Linear(64, 64)
        return model, optim.Adam(0.1).init(model)

    @staticmethod
    @compile
    def step(model, optimizer, x):
        loss, grads = value_and_grad(lambda model, x: ops.mean(ops.square(model(x))))(model, x)
        optimizer.update(model, grads)
        return loss

    def test_parameters_and_state_are_reused(self) -> None:
        model, optimizer = self.model()
        # Initial values may lie in memory of NumPy, which JAX cannot take over: begin with values that it computed.
        model.weight = ops.add(model.weight, 0.0)
        x = ops.ones((2, 64))
        tensors = {**model.tensors(), **optimizer.tensors()}
        places = {path: t.unsafe_buffer_pointer() for path, t in tensors.items() if t.size > 1}
        del tensors
        # The first step, which compiles, must not need more memory than the others.
        for _ in range(2):
            self.step(model, optimizer, x)
            now = {**model.tensors(), **optimizer.tensors()}
            assert {path: now[path].unsafe_buffer_pointer() for path in places} == places
            del now

    def test_what_the_user_holds_stays(self) -> None:
        model, optimizer = self.model()
        x = ops.ones((2, 64))
        self.step(model, optimizer, x)
        weight, view = model.weight, np.asarray(model.bias)
        before, bias = np.array(weight), view.copy()
        self.step(model, optimizer, x)
        assert np.array_equal(weight, before)
        assert np.array_equal(view, bias)
        assert not np.array_equal(model.weight, before)
        assert x.tolist() == [[1.0] * 64] * 2

    def test_edits_between_steps_count(self) -> None:
        model, optimizer = self.model()
        x = ops.ones((2, 64))
        self.step(model, optimizer, x)
        model.weight = ops.zeros_like(model.weight)
        model.bias = ops.zeros_like(model.bias)
        assert float(self.step(model, optimizer, x)) == 0.0


class TestStates:
    def test_a_captured_model_keeps_no_tracers(self) -> None:
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm(3))
        weight = ops.ones((4, 3))
        grad(lambda x: ops.sum(model(x)))(weight)
        compile(lambda x: grad(lambda x: ops.sum(model(x)))(x))(weight)
        assert all(not isinstance(x, jax.core.Tracer) for x in model.tensors().values())


def test_exchange_without_a_copy() -> None:
    # JAX copies what does not begin at a multiple of 64 bytes.
    memory = np.zeros(1024 + 16, "float32")
    start = -memory.__array_interface__["data"][0] % 64 // 4
    array = memory[start : start + 1024]
    x = ops.from_dlpack(array)
    assert x.unsafe_buffer_pointer() == array.__array_interface__["data"][0]
    assert np.from_dlpack(x).__array_interface__["data"][0] == x.unsafe_buffer_pointer()
    if "torch" in ember_ml.get_available_backends():
        import torch

        tensor = torch.arange(1024.0)
        assert ops.from_dlpack(tensor).unsafe_buffer_pointer() == tensor.data_ptr()
        assert torch.from_dlpack(x).data_ptr() == x.unsafe_buffer_pointer()


def test_a_copy_of_host_data_stays_as_it_was() -> None:
    array = np.ones(1 << 16, "float32")
    x = ops.asarray(array, copy=True)
    array[:] = 5.0
    assert float(ops.max(x)) == 1.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_cannot_compute_with_it() -> None:
    done = run(
        "import os, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import ember_ml\n"
        "from ember_ml import ops\n"
        "x = ops.ones(2)\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        ops.add(x, 1.0)\n"
        "    except ember_ml.ForkError as error:\n"
        "        print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert done.stdout.startswith("the jax backend cannot compute in a process that was forked"), done.stderr
