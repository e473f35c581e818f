"""Who computes: the order of choice, its safety, its messages, and engines that others add."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops, transform
from ember_ml.backend import clear_backend, get_available_backends, get_backend, set_backend, use_backend
from ember_ml.dispatch import tensor_types
from ember_ml.errors import BackendNotFoundError, MissingOperationError, UnsupportedError
from ember_ml.nn import tensor

ROOT = Path(ember_ml.__file__).parent.parent
ENGINES = get_available_backends()
OTHERS = [name for name in ENGINES if name != "numpy"]
# Packages of the tensor types.
MODULES = {name: "jaxlib" if name == "jax" else name for name in ENGINES}


@pytest.fixture(autouse=True)
def _as_before(_home: None) -> Iterator[None]:
    """Nothing chosen before, NumPy after."""
    clear_backend()
    yield
    set_backend("numpy")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def chosen(home: Path, text: str) -> Path:
    """A file with a persistent choice."""
    path = home / ".ember" / "backend"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def python(code: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a separate process."""
    known = os.environ.get("PYTHONPATH", "")  # the dependencies of the package may be there
    paths = os.pathsep.join(filter(None, [environment.pop("PYTHONPATH", ""), str(ROOT), known]))
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={"HOME": str(home), "PYTHONPATH": paths, "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def printed(code: str, home: Path, **environment: str) -> str:
    """What such a program prints, once it has ended well."""
    done = python(code, home, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


other = pytest.mark.skipif(not OTHERS, reason="the order of choice needs two engines")


@other
def test_the_order_of_choice(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_backend() == backends.auto_select_backend()[0]
    assert backends.choice_source() == "detection"
    for name in ENGINES:
        clear_backend()
        path = chosen(home, f"{name}\n")
        assert get_backend() == name
        assert str(path) in backends.choice_source()
    chosen(home, OTHERS[0])
    clear_backend()
    monkeypatch.setenv("EMBER_ML_BACKEND", "numpy")
    assert get_backend() == "numpy"
    assert "EMBER_ML_BACKEND" in backends.choice_source()
    set_backend(OTHERS[0])
    assert get_backend() == OTHERS[0]
    assert backends.choice_source() == "set_backend"
    with use_backend("numpy"):
        assert get_backend() == "numpy"
        assert backends.choice_source() == "use_backend"
        set_backend(OTHERS[-1])
        assert get_backend() == "numpy"
    assert get_backend() == OTHERS[-1]


@other
def test_the_order_of_choice_in_a_fresh_process(tmp_path: Path) -> None:
    show = "import ember_ml; print(ember_ml.get_backend(), type(ember_ml.ops.add([1.0], 1.0)).__module__.split('.')[0])"
    name, rest = "numpy", OTHERS[-1]
    assert printed(show, tmp_path, EMBER_ML_BACKEND=name) == f"{name} {name}"
    chosen(tmp_path, rest)
    assert printed(show, tmp_path) == f"{rest} {MODULES[rest]}"
    assert printed(show, tmp_path, EMBER_ML_BACKEND=name) == f"{name} {name}"
    assert printed(show, tmp_path, EMBER_ML_BACKEND="  ") == f"{rest} {MODULES[rest]}"


def test_a_choice_is_made_at_the_first_use(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_ML_BACKEND", "numpy")
    assert get_backend() == "numpy"
    monkeypatch.setenv("EMBER_ML_BACKEND", "abacus")
    assert get_backend() == "numpy"


def test_there_may_be_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.delenv(backends.VARIABLE, raising=False)
    assert get_backend() == ember_ml.auto_select_backend()[0]
    with pytest.raises(RuntimeError, match="home directory"):
        set_backend("numpy", persist=True)


def test_an_empty_file_chooses_nothing(home: Path) -> None:
    chosen(home, "\n")
    assert get_backend() == backends.auto_select_backend()[0]


def test_detection_is_total(monkeypatch: pytest.MonkeyPatch) -> None:
    name, device = backends.auto_select_backend()
    assert name in ENGINES
    assert device in backends.load(name).devices()
    with monkeypatch.context() as patch:
        patch.setattr(backends, "get_available_backends", lambda: ["numpy"])
        assert backends.auto_select_backend() == ("numpy", "cpu")


def test_detection_passes_over_an_engine_that_does_not_import(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, source: str = "") -> backends.Backend:
        raise BackendNotFoundError(name)

    with monkeypatch.context() as patch:
        patch.setattr(backends, "load", broken)
        assert backends.auto_select_backend() == ("numpy", "cpu")


@pytest.mark.parametrize("name", ENGINES)
def test_persist_writes_the_file_and_nothing_else_does(name: str, home: Path) -> None:
    set_backend(name)
    with use_backend("numpy"):
        ops.add([1.0], 1.0)
    assert list(home.iterdir()) == []
    set_backend(name, persist=True)
    assert (home / ".ember" / "backend").read_text(encoding="utf-8").strip() == name
    assert [path.name for path in (home / ".ember").iterdir()] == ["backend"]
    clear_backend()
    assert get_backend() == name


def test_a_bad_name_is_not_persisted(home: Path) -> None:
    chosen(home, "numpy")
    with pytest.raises(BackendNotFoundError):
        set_backend("abacus", persist=True)
    assert (home / ".ember" / "backend").read_text(encoding="utf-8") == "numpy"


def test_writing_is_atomic(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(home, "numpy")

    def full(*args: Any) -> None:
        assert (home / ".ember" / "backend").read_text(encoding="utf-8") == "numpy"
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        set_backend(ENGINES[-1], persist=True)
    assert (home / ".ember" / "backend").read_text(encoding="utf-8") == "numpy"
    assert [path.name for path in (home / ".ember").iterdir()] == ["backend"]


def test_clearing_forgets(home: Path) -> None:
    set_backend("numpy", persist=True)
    clear_backend()
    assert (home / ".ember" / "backend").exists()
    clear_backend(persisted=True)
    assert not (home / ".ember" / "backend").exists()
    clear_backend(persisted=True)
    assert backends.choice_source() == "detection"


SOURCES: dict[str, Callable[[Path, pytest.MonkeyPatch], Any]] = {
    "set_backend": lambda home, patch: set_backend("abacus"),
    "use_backend": lambda home, patch: use_backend("abacus").__enter__(),
    "environment variable EMBER_ML_BACKEND": lambda home, patch: (
        patch.setenv("EMBER_ML_BACKEND", "abacus"),
        get_backend(),
    ),
    "backend": lambda home, patch: (chosen(home, "abacus"), get_backend()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_an_unknown_name_says_where_it_came_from(source: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = source if source != "backend" else f"file {home / '.ember' / 'backend'}"
    with pytest.raises(BackendNotFoundError) as caught:
        SOURCES[source](home, monkeypatch)
    message = str(caught.value)
    assert "'abacus'" in message
    assert expected in message
    assert f"installed: {', '.join(ENGINES)}" in message
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, ValueError)


CHOICES: dict[str, Callable[[str, Path, pytest.MonkeyPatch], Any]] = {
    "set_backend": lambda name, home, patch: set_backend(name),
    "set_backend, kept": lambda name, home, patch: set_backend(name, persist=True),
    "use_backend": lambda name, home, patch: use_backend(name).__enter__(),
    "environment": lambda name, home, patch: (patch.setenv("EMBER_ML_BACKEND", name), ops.add([1.0], 1.0)),
    "module": lambda name, home, patch: (patch.setenv("EMBER_ML_BACKEND", name), backends.get_backend_module()),
    "file": lambda name, home, patch: (chosen(home, f"{name}\n"), get_backend()),
    "to_backend": lambda name, home, patch: tensor.EmberTensor([1.0]).to_backend(name),
    "devices": lambda name, home, patch: ops.get_available_devices(name),
}


@pytest.mark.parametrize("way", CHOICES)
@pytest.mark.parametrize("name", ["autograd", *backends.HIDDEN])
def test_an_internal_engine_cannot_be_chosen(name: str, way: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with use_backend("numpy"):
        assert transform.grad(ops.square)(3.0).item() == 6.0  # loads the internal engine
    with pytest.raises(BackendNotFoundError, match=f"must be a known one, got '{name}'"):
        CHOICES[way](name, home, monkeypatch)
    assert way == "file" or not (home / ".ember" / "backend").exists()


def test_a_tensor_that_is_differentiated_is_of_the_chosen_backend() -> None:
    seen = []

    def f(x: tensor.EmberTensor) -> Any:
        with use_backend(x.backend):
            seen.append((x.backend, x.to_backend("numpy") is x, x.__array_namespace__() is tensor, get_backend()))
            return ops.sum(ops.stack([x * x, x]))

    with use_backend("numpy"):
        assert transform.grad(f)(tensor.EmberTensor([1.0, 2.0])).tolist() == [3.0, 5.0]
    assert seen == [("numpy", True, True, "numpy")]


def test_an_error_about_what_is_differentiated_names_the_chosen_backend() -> None:
    engine = backends.load_hidden(backends.DIFFERENTIATION)
    with pytest.raises(UnsupportedError, match="got the numpy dtype >f4"):
        engine.dtype_of(np.ones(2, ">f4"))


def test_a_submodule_that_another_thread_imports_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_package").mkdir()
    (tmp_path / "slow_package" / "__init__.py").touch()
    (tmp_path / "slow_package" / "part.py").write_text("import time\ntime.sleep(0.5)\nlast = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("slow_package")
    thread = threading.Thread(target=importlib.import_module, args=("slow_package.part",))
    thread.start()
    while "slow_package.part" not in sys.modules:
        time.sleep(0.01)
    assert backends.submodule(package, "part").last == 1  # type: ignore[union-attr]
    thread.join()


def test_an_unknown_name_changes_nothing() -> None:
    set_backend("numpy")
    with pytest.raises(BackendNotFoundError):
        set_backend("abacus")
    with pytest.raises(BackendNotFoundError), use_backend("abacus"):
        pytest.fail("entered")
    assert get_backend() == "numpy"
    assert backends.process_backend() is backends.load("numpy")


def test_an_unreadable_file_says_which(home: Path) -> None:
    path = home / ".ember" / "backend"
    path.mkdir(parents=True)
    with pytest.raises(BackendNotFoundError, match="cannot be read") as caught:
        get_backend()
    assert str(path) in str(caught.value)
    path.rmdir()
    path.write_bytes(b"\xff\xfe\x00numpy")
    with pytest.raises(BackendNotFoundError, match="cannot be read") as caught:
        ops.add([1.0], 1.0)
    assert str(path) in str(caught.value)
    assert "installed: numpy" in str(caught.value)


def test_only_a_short_regular_file_is_read(home: Path) -> None:
    path = chosen(home, "numpy\n" * 1_000)
    with pytest.raises(BackendNotFoundError, match="longer than") as caught:
        get_backend()
    assert str(path) in str(caught.value)
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BackendNotFoundError, match="longer than"):
        get_backend()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BackendNotFoundError, match="not a regular file") as caught:
        get_backend()
    assert str(path) in str(caught.value)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(BackendNotFoundError, match="not a regular file"):
        get_backend()
    path.unlink()
    path.symlink_to(home / "elsewhere")
    (home / "elsewhere").write_text("\n numpy \n")
    assert get_backend() == "numpy"


def test_a_choice_can_be_made_in_spite_of_an_unreadable_file(home: Path) -> None:
    (home / ".ember" / "backend").mkdir(parents=True)
    set_backend("numpy")
    assert get_backend() == "numpy"


def test_an_engine_that_fails_to_import_says_why_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('libfast.so.3: cannot open')")
    done = python(
        "import ember_ml; ember_ml.ops.add([1.0], 1.0)", tmp_path, EMBER_ML_BACKEND="torch", PYTHONPATH=str(tmp_path)
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()
    message = next(line for line in reversed(last) if "BackendNotFoundError" in line)
    assert "torch" in message
    assert "libfast.so.3: cannot open" in message
    assert "environment variable EMBER_ML_BACKEND" in message
    assert "pip install 'ember-ml[torch]'" in message


def test_an_engine_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    code = """
    import importlib.util, sys
    real = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name.partition('.')[0] == 'mlx' else real(name, *rest)
    sys.modules['mlx'] = None
    import ember_ml
    print(ember_ml.get_available_backends())
    for name in ('mlx', 'abacus'):
        try:
            ember_ml.set_backend(name)
        except ember_ml.errors.BackendNotFoundError as error:
            print(error)
    """
    first, *messages = printed(code, tmp_path).splitlines()
    assert "mlx" not in first
    assert len(messages) == 2
    assert all("pip install 'ember-ml[mlx]'" in message and "installed: numpy" in message for message in messages)


@pytest.mark.parametrize("name", ENGINES)
def test_a_choice_survives_reloading(name: str, tmp_path: Path) -> None:
    code = f"""
    import importlib, ember_ml
    from ember_ml.ops import add
    ember_ml.set_backend({name!r})
    add([1.0], 1.0)
    importlib.reload(ember_ml)
    print(ember_ml.get_backend(), type(add([1.0], 1.0)).__module__.split('.')[0])
    importlib.reload(ember_ml.backend)
    print(ember_ml.get_backend(), ember_ml.backend.get_backend(), type(add([1.0], 1.0)).__module__.split('.')[0])
    importlib.reload(ember_ml)
    print(ember_ml.get_backend(), type(ember_ml.ops.add([1.0], 1.0)).__module__.split('.')[0])
    ember_ml.set_backend('numpy')
    print(ember_ml.get_backend(), type(add([1.0], 1.0)).__module__.split('.')[0])
    try:
        with ember_ml.use_backend({name!r}):
            print(ember_ml.get_backend(), type(add([1.0], 1.0)).__module__.split('.')[0])
            add([1.0], [1.0, 2.0, 3.0])
            add([1.0, 2.0], [1.0, 2.0, 3.0])
    except ValueError as error:
        print(type(error).__name__)
    """
    assert printed(code, tmp_path, EMBER_ML_BACKEND="numpy").splitlines() == [
        f"{name} {MODULES[name]}", f"{name} {name} {MODULES[name]}", f"{name} {MODULES[name]}", "numpy numpy",
        f"{name} {MODULES[name]}", "ValueError",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
def test_an_imported_operation_is_never_stale(name: str, tmp_path: Path) -> None:
    code = f"""
    from ember_ml.ops import add
    import ember_ml
    ember_ml.set_backend({name!r})
    print(type(add([1.0], [2.0])).__module__.split('.')[0], add([1.0], [2.0]).tolist())
    """
    assert printed(code, tmp_path) == f"{MODULES[name]} [3.0]"


def test_switching_back_and_forth() -> None:
    add = ops.add
    for _ in range(3):
        for name in ENGINES:
            set_backend(name)
            assert isinstance(add([1.0], [2.0]), backends.load(name).tensors)
            assert ember_ml.get_backend_module().__name__ == f"ember_ml.backend.{name}"


def test_blocks_nest() -> None:
    set_backend("numpy")
    with use_backend(ENGINES[-1]):
        with use_backend("numpy"):
            assert get_backend() == "numpy"
            with use_backend(ENGINES[-1]):
                assert get_backend() == ENGINES[-1]
            assert get_backend() == "numpy"
        assert get_backend() == ENGINES[-1]
    assert get_backend() == "numpy"


def test_one_block_can_be_entered_again_and_within_itself() -> None:
    set_backend("numpy")
    block = use_backend(ENGINES[-1])
    for _ in range(2):
        with block:
            with block:
                assert get_backend() == ENGINES[-1]
            assert get_backend() == ENGINES[-1]
        assert get_backend() == "numpy"


def test_one_block_can_be_open_in_many_threads_and_tasks() -> None:
    set_backend("numpy")
    block = use_backend(ENGINES[-1])
    inside, outside = threading.Barrier(4, timeout=30), threading.Barrier(4, timeout=30)
    seen: list[str] = []

    def work() -> None:
        with block:
            inside.wait()
            seen.append(get_backend())
            outside.wait()
        seen.append(get_backend())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(seen) == sorted([ENGINES[-1], "numpy"] * 4)

    async def task(turns: int) -> list[str]:
        with block:
            for _ in range(turns):
                await asyncio.sleep(0)
            found = get_backend()
        return [found, get_backend()]

    async def tasks() -> list[list[str]]:
        return await asyncio.gather(*map(task, (3, 1, 2)))

    assert asyncio.run(tasks()) == [[ENGINES[-1], "numpy"]] * 3
    assert backends.process_backend() is backends.load("numpy")


@other
def test_a_block_that_ends_elsewhere_ends() -> None:
    """A generator may be closed by another thread, after a later block was opened, or by the loop that it ran in."""
    set_backend("numpy")

    def generator() -> Iterator[str]:
        with use_backend(OTHERS[0]):
            yield get_backend()

    started = generator()
    assert next(started) == OTHERS[0]
    with use_backend(ENGINES[-1]):
        thread = threading.Thread(target=started.close)  # type: ignore[attr-defined]
        thread.start()
        thread.join(30)
        assert get_backend() == ENGINES[-1]
    assert get_backend() == "numpy"

    async def numbers() -> AsyncIterator[int]:
        with use_backend(OTHERS[0]):
            yield 1
            yield 2

    async def first() -> int:
        async for number in numbers():
            return number
        return 0

    assert asyncio.run(first()) == 1
    assert get_backend() == "numpy"
    assert backends.process_backend() is backends.load("numpy")


def test_a_task_that_outlives_its_block_leaves_it() -> None:
    set_backend("numpy")

    async def late() -> str:
        await asyncio.sleep(0)
        return get_backend()

    async def start() -> str:
        with use_backend(ENGINES[-1]):
            task = asyncio.create_task(late())
        with use_backend("numpy"):
            return await task

    assert asyncio.run(start()) == "numpy"


def test_a_block_ends_with_an_exception() -> None:
    set_backend("numpy")
    with pytest.raises(ZeroDivisionError), use_backend(ENGINES[-1]):
        _ = 1 / 0
    assert get_backend() == "numpy"
    assert backends.process_backend() is backends.load("numpy")


def test_a_block_is_a_decorator() -> None:
    set_backend("numpy")

    @use_backend(ENGINES[-1])
    def names(depth: int) -> list[str]:
        return [get_backend(), *(names(depth - 1) if depth else [])]

    assert names(2) == [ENGINES[-1]] * 3
    assert get_backend() == "numpy"
    assert ember_ml.using_backend is use_backend


@pytest.mark.parametrize("name", ENGINES)
def test_a_block_decorates_a_coroutine(name: str) -> None:
    set_backend("numpy")

    @use_backend(name)
    async def names() -> list[str]:
        before = get_backend()
        await asyncio.sleep(0)
        return [before, get_backend()]

    async def many() -> list[list[str]]:
        return await asyncio.gather(names(), names())

    assert inspect.iscoroutinefunction(names)
    assert asyncio.run(many()) == [[name, name]] * 2
    assert get_backend() == "numpy"
    assert backends.process_backend() is backends.load("numpy")


@pytest.mark.parametrize("name", ENGINES)
def test_a_block_decorates_a_generator_but_not_its_reader(name: str) -> None:
    set_backend("numpy")
    closed = []

    @use_backend(name)
    def names() -> Iterator[Any]:
        try:
            received = yield get_backend()
            try:
                yield get_backend(), received
            except KeyError:
                yield get_backend(), "thrown"
            return "end"
        finally:
            closed.append(get_backend())

    def reader(found: list[Any]) -> Iterator[Any]:
        found.append((yield from names()))

    generator: Any = names()
    assert next(generator) == name
    assert get_backend() == "numpy"
    assert generator.send("sent") == (name, "sent")
    assert generator.throw(KeyError()) == (name, "thrown")
    assert backends.process_backend() is backends.load("numpy")
    generator.close()
    assert closed == [name]
    found: list[Any] = []
    assert list(reader(found)) == [name, (name, None)]
    assert found == ["end"]
    generator = names()
    next(generator)
    with pytest.raises(ZeroDivisionError):
        generator.throw(ZeroDivisionError())
    assert backends.process_backend() is backends.load("numpy")


def test_a_block_does_not_decorate_an_asynchronous_generator() -> None:
    async def names() -> Any:
        yield get_backend()

    with pytest.raises(TypeError, match="use_backend: a decorated function must not be an asynchronous generator,"):
        use_backend("numpy")(names)


@pytest.mark.parametrize("name", [None, 3, ["numpy"], b"numpy"])
def test_a_name_is_a_string(name: Any) -> None:
    set_backend("numpy")
    with pytest.raises(TypeError, match="the name of a backend must be a string, such as 'numpy', got "):
        set_backend(name)
    with pytest.raises(TypeError, match="a backend"), use_backend(name):
        pytest.fail("entered")
    assert backends.process_backend() is backends.load("numpy")


@pytest.mark.parametrize(("name", "meant"), [("NumPy", "numpy"), ("nunpy", "numpy"), (" numpy", "numpy")])
def test_a_name_that_is_nearly_right_says_which_was_meant(name: str, meant: str) -> None:
    with pytest.raises(BackendNotFoundError, match=f"did you mean {meant!r}"):
        set_backend(name)


@pytest.mark.parametrize("name", ENGINES)
def test_host_arrays_follow_the_block(name: str) -> None:
    import numpy as np

    set_backend("numpy")
    x = np.ones(3, np.float32)
    assert isinstance(ops.add(x, x), np.ndarray)
    with use_backend(name):
        assert isinstance(ops.add(x, x), backends.load(name).tensors)
        assert isinstance(ops.sqrt(x), backends.load(name).tensors)
    assert isinstance(ops.add(x, x), np.ndarray)


def engines_of_host_arrays() -> set[str]:
    """The engines that compute with host arrays now, whatever the number and the roles of the arguments."""
    import numpy as np

    x, mask = np.ones(3, np.float32), np.ones(3, bool)
    results = ops.sqrt(x), ops.add(x, x), ops.add(x, 1.0), ops.concat([x, x]), ops.where(mask, x, x), ops.any(mask)
    return {backend.name for result in results for backend in backends.loaded() if isinstance(result, backend.tensors)}


@pytest.mark.parametrize("name", OTHERS)
def test_host_arrays_follow_every_switch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen_now in ("numpy", name) * 2:
        set_backend(chosen_now)
        assert engines_of_host_arrays() == {chosen_now}
    for chosen_now in ("numpy", name) * 2:
        clear_backend()
        monkeypatch.setenv(backends.VARIABLE, chosen_now)
        assert engines_of_host_arrays() == {chosen_now}


@other
def test_every_change_of_the_process_wide_backend_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener is called after each change, and ``process_backend`` then returns the new value."""
    seen: list[backends.Backend | None] = []
    monkeypatch.setattr(backends._state, "listeners", list(backends._state.listeners))
    backends.on_change(lambda: seen.append(backends.process_backend()))
    first, second = backends.load("numpy"), backends.load(OTHERS[0])
    set_backend("numpy")
    set_backend(OTHERS[0])
    with use_backend("numpy"), use_backend("numpy"):
        pass
    clear_backend()
    monkeypatch.setenv(backends.VARIABLE, "numpy")
    get_backend()
    assert seen == [first, second, None, second, None, first]


def mistakes(name: str, rounds: int) -> int:
    """How often something in a block was not of its engine: the name, a list, a host array, a scalar, a definition."""
    import numpy as np

    own, x, wrong = backends.load(name).tensors, np.ones(4, np.float32), 0
    for _ in range(rounds):
        wrong += get_backend() != name
        results = ops.add([1.0], [2.0]), ops.add(x, x), ops.multiply(2.0, 3.0), ops.square(x)
        wrong += sum(not isinstance(result, own) for result in results)
    return wrong


def test_threads_never_see_anothers_engine() -> None:
    set_backend("numpy")
    found: list[int | str] = []
    start = threading.Barrier(8)

    def work(i: int) -> None:
        name = ENGINES[i % len(ENGINES)]
        try:
            start.wait(30)
            for _ in range(25):
                with use_backend(name):
                    found.append(mistakes(name, 12))
                found.append(int(get_backend() != "numpy"))
        except BaseException as error:
            found.append(repr(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert found == [0] * (8 * 25 * 2)
    assert get_backend() == "numpy"
    assert backends.process_backend() is backends.load("numpy")


def test_tasks_never_see_anothers_engine() -> None:
    set_backend("numpy")

    async def work(i: int) -> int:
        name, wrong = ENGINES[i % len(ENGINES)], 0
        for _ in range(10):
            with use_backend(name):
                wrong += mistakes(name, 2)
                await asyncio.sleep(0)
                wrong += mistakes(name, 2)
            await asyncio.sleep(0)
            wrong += get_backend() != "numpy"
        return wrong

    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(work(i) for i in range(50)))

    assert asyncio.run(all_of_them()) == [0] * 50
    assert backends.process_backend() is backends.load("numpy")


def test_switching_while_others_compute() -> None:
    errors: list[BaseException] = []
    done = threading.Event()

    def compute() -> None:
        try:
            while not done.is_set():
                assert ops.add([1.0], [2.0]).tolist() == [3.0]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(300):
        set_backend(ENGINES[i % len(ENGINES)])
    done.set()
    for thread in threads:
        thread.join(30)
    assert errors == []


def test_a_thread_that_starts_in_a_block_sees_the_process_wide_choice() -> None:
    set_backend("numpy")
    seen: list[str] = []
    with use_backend(ENGINES[-1]):
        thread = threading.Thread(target=lambda: seen.append(get_backend()))
        thread.start()
        thread.join()
    assert seen == ["numpy"]


CORE = """
class Beads:
    def __init__(self, values, dtype):
        self.values, self.dtype = list(values), dtype
    @property
    def shape(self): return (len(self.values),)
    ndim = 1
    def __len__(self): return len(self.values)
    def tolist(self): return self.values

TENSORS = (Beads,)
DTYPES = {name: f"beads-{name}" for name in ("bool", "int64", "float32", "float64")}

def convert(value, dtype, device):
    if isinstance(value, Beads): return value
    values = list(value) if hasattr(value, "__len__") else [value]
    return Beads([float(v) for v in values], dtype or DTYPES["float32"])
def scalar_like(number, like): return Beads([float(number)], like.dtype)
def cast(x, dtype): return Beads(x.values, dtype)
def to_host(x): return x.values
def device_like(x): return "table"
def device_of(x): return "table"
def find_device(name): return "table"
def devices(): return ["table"]
def error_class(error): return None
"""

ENGINE = """
from abacus import core

def _spread(x, y):
    n = max(len(x), len(y))
    return zip(x.values * (n // len(x)), y.values * (n // len(y)))
def add(x, y): return core.Beads([a + b for a, b in _spread(x, y)], x.dtype)
def multiply(x, y): return core.Beads([a * b for a, b in _spread(x, y)], x.dtype)
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory in which a distribution is installed that adds an engine, whose tensors are strings of beads."""
    site = tmp_path / "site"
    info = site / "abacus_ember-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "abacus").mkdir()
    (site / "abacus" / "core.py").write_text(CORE)
    (site / "abacus" / "__init__.py").write_text(ENGINE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: abacus-ember\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ember_ml.backends]\nabacus = abacus\n")
    (info / "RECORD").write_text("")
    return site


def test_another_distribution_adds_an_engine(site: Path, tmp_path: Path) -> None:
    code = """
    import sys, ember_ml
    from ember_ml import ops
    from ember_ml.dispatch import REGISTRY
    print(ember_ml.get_available_backends()[-1], 'abacus' in sys.modules)
    ember_ml.set_backend('abacus')
    x = ops.add([1, 2], 3)
    print(type(x).__name__, x.tolist(), x.dtype)
    print(type(ops.square(x)).__name__, ops.square(x).tolist())
    ember_ml.set_backend('numpy')
    print(type(ops.add(x, x)).__name__, ops.add(x, 1).tolist(), ops.add([1.0], x).tolist(), ops.square(x).tolist())
    with ember_ml.use_backend('abacus'):
        print(ember_ml.get_backend(), ember_ml.get_backend_module().__name__)
        print(ops.get_dtype(x), ops.get_device(x), ops.get_available_devices(), ops.result_type(x, 1))
        try:
            ops.sqrt(x)
        except ember_ml.errors.MissingOperationError as error:
            print(error)
    backend = ember_ml.backend.load('abacus')
    providers = {backend.provider(operation) for operation in REGISTRY.values()}
    print(sorted(providers), [name for name, o in REGISTRY.items() if backend.provider(o) == 'own'])
    try:
        ops.add(x, 'beads')
    except TypeError as error:
        print(error, *error.__notes__, sep='; ')
    """
    lines = printed(code, tmp_path, PYTHONPATH=str(site)).splitlines()
    assert lines[:7] == [
        "abacus False",
        "Beads [4.0, 5.0] beads-float32",
        "Beads [16.0, 25.0]",
        "Beads [5.0, 6.0] [5.0, 6.0] [16.0, 25.0]",
        "abacus abacus",
        "float32 table ['table'] float32",
        f"sqrt: the abacus backend has no sqrt; these have it: {', '.join(ENGINES)}",
    ]
    assert lines[7] == "['defined', 'missing', 'own'] ['add', 'multiply']"
    assert lines[8].endswith("in ember_ml.ops.add(beads-float32[2], str) on the abacus backend")


def test_an_added_engine_that_is_broken_names_its_distribution(site: Path, tmp_path: Path) -> None:
    (site / "abacus" / "core.py").write_text("raise RuntimeError('beads are missing')")
    done = python("import ember_ml; ember_ml.set_backend('abacus')", tmp_path, PYTHONPATH=str(site))
    assert done.returncode == 1
    assert "BackendNotFoundError" in done.stderr
    assert "beads are missing" in done.stderr
    assert "pip install abacus-ember" in done.stderr


def test_an_added_engine_has_the_fast_path(site: Path, tmp_path: Path) -> None:
    core = site / "abacus" / "core.py"
    core.write_text(CORE.replace('("bool", "int64", "float32", "float64")', '("float32", "float64")'))
    code = """
    import ember_ml
    from ember_ml import ops
    from ember_ml.dispatch.general import GeneralPath
    for name in ember_ml.get_available_backends():
        ember_ml.set_backend(name)
        x = ops.asarray([1.0, 2.0]) if name != 'abacus' else ops.add([0.0], [1.0, 2.0])
    def refuse(self, *values): raise AssertionError(self.operation)
    GeneralPath.__call__ = refuse
    for active in ember_ml.get_available_backends():
        ember_ml.set_backend(active)
        print(type(x).__name__, ops.add(x, x).tolist(), ops.multiply(x, 2.0).tolist())
    """
    lines = printed(code, tmp_path, PYTHONPATH=str(site)).splitlines()
    assert lines
    assert set(lines) == {"Beads [2.0, 4.0] [2.0, 4.0]"}


@pytest.mark.parametrize(
    ("core", "lacks"),
    [
        (None, "the module abacus must have a submodule core, got none"),
        (
            CORE.replace("def cast(", "def forge(").replace("def scalar_like", "def raise_"),
            "abacus.core must define scalar_like, cast",
        ),
        (CORE + "convert = None", "abacus.core.convert must be a function, got None"),
        (CORE + "TENSORS = Beads", "abacus.core.TENSORS must be a tuple of types, got "),
        (CORE + "TENSORS = ()", "abacus.core.TENSORS must be a tuple of types, got ()"),
        (CORE + "DTYPES = {'bool': 1, 'float99': 2}", "abacus.core.DTYPES must have float32 among its names"),
        (CORE + "DTYPES['float99'] = 1", "abacus.core.DTYPES must have names of dtypes, got 'float99'"),
    ],
)
def test_an_added_engine_that_is_incomplete_says_what_it_lacks(
    core: str | None, lacks: str, site: Path, tmp_path: Path
) -> None:
    if core is None:
        (site / "abacus" / "__init__.py").write_text("")
    else:
        (site / "abacus" / "core.py").write_text(core)
    done = python("import ember_ml; ember_ml.set_backend('abacus')", tmp_path, PYTHONPATH=str(site))
    last = done.stderr.strip().splitlines()[-1]
    assert "BackendNotFoundError" in last
    assert lacks in last
    assert "pip install abacus-ember" in last


@pytest.mark.parametrize("error", ["SystemExit(3)", "RuntimeError('beads')", "GeneratorExit()"])
@pytest.mark.parametrize("file", ["__init__.py", "core.py", "math.py"])
def test_whatever_the_import_of_an_added_engine_raises(file: str, error: str, site: Path, tmp_path: Path) -> None:
    (site / "abacus" / file).write_text(f"raise {error}")
    if file == "math.py":
        (site / "abacus" / "__init__.py").write_text("from abacus import core")
    code = """
    import ember_ml
    from ember_ml import ops
    for _ in range(2):
        try:
            ember_ml.set_backend('abacus')
        except ember_ml.BackendNotFoundError as error:
            print(error)
    print(ops.add([1.0], 1.0).tolist())
    """
    first, second, result = printed(code, tmp_path, PYTHONPATH=str(site), EMBER_ML_BACKEND="numpy").splitlines()
    assert first == second
    assert error.partition("(")[0] in first
    assert result == "[2.0]"


def test_an_interrupt_is_none_of_the_engine(site: Path, tmp_path: Path) -> None:
    (site / "abacus" / "core.py").write_text("raise KeyboardInterrupt")
    done = python("import ember_ml; ember_ml.set_backend('abacus')", tmp_path, PYTHONPATH=str(site))
    assert done.stderr.strip().splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.parametrize("name", [*backends.OWN, *backends.HIDDEN])
def test_no_distribution_takes_the_name_of_an_engine(name: str, site: Path, tmp_path: Path) -> None:
    entries = f"[ember_ml.backends]\n{name} = abacus\nabacus = abacus\n"
    (site / "abacus_ember-1.0.dist-info" / "entry_points.txt").write_text(entries)
    code = f"""
    import warnings, ember_ml
    from ember_ml import ops, transform
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        print(ember_ml.get_available_backends())
        ember_ml.set_backend('numpy')
        print(ember_ml.get_backend_module().__name__, ops.add([1.0], 1.0).tolist())
        print(transform.grad(ops.square)(3.0).item())
        if {name!r} in ember_ml.get_available_backends():
            assert ember_ml.backend.load({name!r}).module.__name__ == 'ember_ml.backend.{name}'
    print(*(warning.message for warning in caught), sep='\\n')
    ember_ml.set_backend('abacus')
    print(type(ops.add([1.0], 1.0)).__name__)
    """
    lines = printed(code, tmp_path, PYTHONPATH=str(site)).splitlines()
    assert lines == [
        str([*ENGINES, "abacus"]),
        "ember_ml.backend.numpy [2.0]",
        "6.0",
        f"the backend {name!r} that the distribution abacus-ember adds is ignored: that name is taken by ember-ml",
        "Beads",
    ]


@pytest.mark.parametrize("name", OTHERS)
def test_no_distribution_takes_the_tensors_of_an_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taker = backends.Home(f"{name}.abacus", name, "pip install abacus-ember")
    known = backends.homes()
    monkeypatch.setattr(backends, "homes", lambda: {**known, "abacus": taker})
    own = backends.load(name)
    assert tensor_types._classify(own.tensors[0]) is own


def test_of_two_distributions_with_one_name_the_first_has_it(site: Path, tmp_path: Path) -> None:
    info = tmp_path / "later" / "beads-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beads\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ember_ml.backends]\nabacus = nothing\nodd = ..\n")
    code = """
    import warnings, ember_ml
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        ember_ml.set_backend('abacus')
    print(*(warning.message for warning in caught), ember_ml.get_backend_module().__name__, sep='\\n')
    """
    paths = os.pathsep.join([str(site), str(info.parent)])
    assert printed(code, tmp_path, PYTHONPATH=paths).splitlines() == [
        "the backend 'abacus' that the distribution beads adds is ignored: that name is taken by abacus-ember",
        "the backend 'odd' that the distribution beads adds is ignored: its entry point must name a module, got '..'",
        "abacus",
    ]


def test_a_missing_operation_is_never_none(site: Path, tmp_path: Path) -> None:
    code = """
    import ember_ml
    ember_ml.set_backend('abacus')
    print(callable(ember_ml.ops.sqrt))
    try:
        ember_ml.ops.sqrt([1.0])
    except NotImplementedError as error:
        print(type(error).__name__)
    """
    assert printed(code, tmp_path, PYTHONPATH=str(site)).splitlines() == ["True", "MissingOperationError"]
    assert issubclass(MissingOperationError, NotImplementedError)


def test_a_broken_engine_does_not_hide_that_an_operation_is_missing(site: Path, tmp_path: Path) -> None:
    (site / "abacus" / "__init__.py").write_text(ENGINE)
    (site / "broken.py").write_text("raise RuntimeError('broken')")
    entries = "[ember_ml.backends]\nabacus = abacus\nbroken = broken\n"
    (site / "abacus_ember-1.0.dist-info" / "entry_points.txt").write_text(entries)
    code = """
    import ember_ml
    ember_ml.set_backend('abacus')
    try:
        ember_ml.ops.sqrt([1.0])
    except ember_ml.MissingOperationError as error:
        print(error)
    """
    message = printed(code, tmp_path, PYTHONPATH=str(site))
    assert message == f"sqrt: the abacus backend has no sqrt; these have it: {', '.join(ENGINES)}"


def test_reloading_in_this_process_keeps_the_choice() -> None:
    set_backend(ENGINES[-1])
    importlib.reload(ember_ml)
    assert ember_ml.get_backend() == ENGINES[-1]


needs_mlx = pytest.mark.skipif("mlx" not in ENGINES, reason="it is MLX whose threads a fork loses")

# What calls MLX, given the tensors x (native), e (portable) and the compiled function f of the parent.
FORKED = {
    "operation": "ops.add(x, x)",
    "operation of one tensor": "ops.sqrt(x)",
    "operation with a number": "ops.add(x, 1.0)",
    "promotion": "ops.add(x, ops.asarray(1))",
    "composed operation": "ops.lerp(x, x, 0.5)",
    "several tensors": "ops.stack([x, x])",
    "list": "ops.add([1.0], 2.0)",
    "creation": "ops.zeros(3)",
    "reading": "ops.to_numpy(x)",
    "evaluation": "ops.eval(x)",
    "portable creation": "EmberTensor([1.0])",
    "portable tensor of a native one": "EmberTensor(x)",
    "portable operator": "e + e",
    "portable number first": "1.0 + e",
    "portable item": "e[0].item()",
    "portable list": "e.tolist()",
    "portable truth": "bool(e[0])",
    "portable array": "e.numpy()",
    "portable text": "str(e)",
    "portable index": "e[0]",
    "portable pickle": "pickle.dumps(e)",
    "portable on another engine": "e.to_backend('numpy')",
    "random": "ops.random.uniform((2,))",
    "random stream": "ops.random.Generator(1).normal((2,))",
    "gradient": "transform.grad(ops.sum)(x)",
    "vmap": "transform.vmap(ops.sqrt)(x)",
    "checkpoint": "transform.checkpoint(ops.sqrt)(x)",
    "compiled function": "f(x)",
    "file": "ops.save(folder + '/x.npz', {'x': x})",
    "loaded file": "ops.load(folder + '/kept.npz')",
    "layer": "model(x)",
    "new layer": "nn.Linear(2, 2)",
    "another engine is active": "(ember_ml.set_backend('numpy'), ops.add(x, 1.0))",
    "moved to another engine": "(ember_ml.set_backend('numpy'), ops.convert_to_tensor(x))",
    "in a block": "use(x)",
}

FORK = """
import os, pickle, signal, sys, tempfile, warnings
import ember_ml
from ember_ml import nn, ops, transform
from ember_ml.nn.tensor import EmberTensor

def use(x):
    with ember_ml.use_backend('mlx'):
        return ops.add([1.0], 1.0)

ember_ml.set_backend('mlx')
folder = tempfile.mkdtemp()
x = ops.asarray([1.0, 4.0])
e = EmberTensor(x) * 1.0
f = transform.compile(ops.sqrt)
model = nn.Linear(2, 2)
ops.save(folder + '/kept.npz', {'x': x})
print(f(x).tolist(), e.tolist(), model(x).shape)
sys.stdout.flush()
warnings.simplefilter('ignore')  # Python 3.12 warns of forks of processes with threads
"""

CHILD = """
for name, code in CASES.items():
    sys.stdout.flush()
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            print(name, '|', eval(code))
        except BaseException as error:
            print(name, '|', type(error).__name__, '|', error)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


@needs_mlx
def test_mlx_is_an_error_in_a_forked_process(tmp_path: Path) -> None:
    lines = printed(FORK + f"CASES = {FORKED!r}" + CHILD, tmp_path).splitlines()
    assert lines[0] == "[1.0, 2.0] [1.0, 4.0] (2,)"
    for line, name in zip(lines[1:], FORKED, strict=True):
        found, kind, message = line.split(" | ")
        assert (found, kind) == (name, "ForkError"), line
        assert "the mlx backend cannot compute in a process that was forked" in message
        assert "'spawn'" in message
        assert "set_backend('numpy')" in message


@needs_mlx
def test_other_engines_compute_in_a_forked_process(tmp_path: Path) -> None:
    cases = {
        name: f"(ember_ml.set_backend({name!r}), (EmberTensor([1.0]) + ops.sqrt([4.0])).tolist(),"
        f" transform.grad(ops.square)(3.0).item(), type(ops.random.uniform(2)).__module__.split('.')[0],"
        f" (x.dtype is not None, x.shape == (2,), ember_ml.get_backend()))"
        for name in ENGINES
        if name != "mlx"
    }
    lines = printed(FORK + f"CASES = {cases!r}" + CHILD, tmp_path).splitlines()[1:]
    assert lines == [f"{name} | (None, [3.0], 6.0, {MODULES[name]!r}, (True, True, {name!r}))" for name in cases]


@needs_mlx
def test_user_operations_and_switches_after_a_fork(tmp_path: Path) -> None:
    code = """
    def declared():
        from ember_ml.dtypes import floating
        from ember_ml.types import Tensor, TensorLike

        @ember_ml.op(floating)
        def twice(x: TensorLike, /) -> Tensor:
            return ops.add(x, x)

        ember_ml.set_backend('numpy')
        ops.set_default_dtype('float64')
        return twice([1.0]).tolist(), ember_ml.get_available_backends()

    def again():
        child = os.fork()
        if not child:
            signal.alarm(20)
            try:
                ops.add(x, x)
            except ember_ml.ForkError:
                os._exit(3)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    """
    cases = {"declared": "declared()", "again": "again()"}
    program = FORK + textwrap.dedent(code) + f"CASES = {cases!r}" + CHILD + "print(ops.add(x, x).tolist())"
    assert printed(program, tmp_path).splitlines()[1:] == [
        f"declared | ([2.0], {ENGINES!r})",
        "again | 3",
        "[2.0, 8.0]",
    ]


@needs_mlx
def test_mlx_computes_in_a_forked_process_if_it_has_not_before(tmp_path: Path) -> None:
    code = """
    import os, signal, sys, ember_ml
    from ember_ml import ops
    ember_ml.set_backend('mlx')
    ops.get_available_devices()
    child = os.fork()
    if not child:
        signal.alarm(20)
        print(ops.add([1.0], 1.0).tolist())
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """
    assert printed(code, tmp_path) == "[2.0]"


@needs_mlx
@pytest.mark.skipif("torch" not in ENGINES, reason="the loader is torch's")
def test_data_loaders_work_while_mlx_is_loaded(tmp_path: Path) -> None:
    code = """
    import warnings
    import torch, ember_ml
    from ember_ml import ops
    warnings.simplefilter('ignore')  # Python 3.12 warns of forks of processes with threads

    class Rows(torch.utils.data.Dataset):
        def __init__(self, engine):
            self.engine = engine
        def __len__(self):
            return 4
        def __getitem__(self, i):
            with ember_ml.use_backend(self.engine):
                return ops.to_numpy(ops.multiply([1.0, 2.0], float(i)))

    ember_ml.set_backend('mlx')
    print(ops.add([1.0], 1.0).tolist())
    for engine in ('numpy', 'mlx'):
        try:
            for batch in torch.utils.data.DataLoader(Rows(engine), batch_size=2, num_workers=1, timeout=60):
                print(batch.tolist())
        except ember_ml.ForkError as error:
            print('spawn' in str(error))
    """
    assert printed(code, tmp_path).splitlines() == [
        "[2.0]",
        "[[0.0, 0.0], [1.0, 2.0]]",
        "[[2.0, 4.0], [3.0, 6.0]]",
        "True",
    ]
