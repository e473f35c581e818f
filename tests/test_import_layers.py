"""The layers of the library: a part imports only what is below it, wherever in a file the import is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import ember_ml
from ember_ml import backend, extend

ROOT = Path(ember_ml.__file__).parent

# From the bottom to the top. A name is that of a module below ``ember_ml``, with all that is in it and has no layer of
# its own. The engines' folders implement the operations, so they are above these; they are loaded by name. ``ops.*``
# are the modules of operations, ``ops`` is the package as users see it, which has the transforms too.
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "errors interrupts older_names spellings",
        "dtypes types",
        "shapes",
        "tree",
        "backend",
        "distributed.launch",
        "distributed.calls",
        "dispatch",
        "random",
        "ops.*",
        "transform",
        "gradients",
        "ops",
        "backend.numpy",
        "backend.torch backend.mlx backend.jax",
        "distributed",
        "extend",
        "ember_ml",
        "datasets frames",
        "nn",
        "optim",
        "training",
        "export models sklearn",
        "testing",
        "demo tools",
        "cli reference",
        "__main__ tools.analyze_backend_operations",
    )
)

# The imports that go up, and why.
UPWARDS = {
    ("backend", "dispatch"): "for type checkers: operations are parameters of a backend's methods",
    **{
        ("backend", f"backend.{engine}"): "for type checkers: the engines are held to the protocols"
        for engine in ("numpy", "torch", "mlx", "jax")
    },
    ("dtypes", "backend"): "when NumPy asks a dtype for its own, the backend of NumPy says it",
    ("types", "nn"): "for type checkers: the class of parameters has an older name there",
    ("ember_ml", "datasets"): "for type checkers: it is imported when it is first used",
    ("ember_ml", "export"): "for type checkers: it is imported when it is first used",
    ("ember_ml", "models"): "for type checkers: it is imported when it is first used",
    ("ember_ml", "nn"): "for type checkers: it is imported when it is first used",
    ("ember_ml", "optim"): "for type checkers: it is imported when it is first used",
    ("ember_ml", "sklearn"): "for type checkers: it is imported when it is first used",
    ("ember_ml", "training"): "for type checkers: it is imported when it is first used",
}


def module_name(path: Path) -> str:
    """The name of a file's module below ``ember_ml``; ``ember_ml`` for the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "ember_ml"


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """The modules below ``ember_ml`` that some nodes import, each with the name that is imported from it, if any."""
    for node in nodes:
        assert not isinstance(node, ast.ImportFrom) or node.level == 0
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "ember_ml":
                    yield alias.name.removeprefix("ember_ml."), ""
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "ember_ml":
            base = node.module.partition(".")[2]
            for alias in node.names:
                full = f"{base}.{alias.name}" if base else alias.name
                if full in MODULES:
                    yield full, ""
                else:
                    yield base or "ember_ml", alias.name


def part_of(module: str) -> str:
    """The entry of ``LAYERS`` that a module belongs to: that of the most of its name."""
    names = frozenset().union(*LAYERS)
    parts = module.split(".")
    if len(parts) > 1 and f"{parts[0]}.*" in names:
        return f"{parts[0]}.*"
    return next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in names), module)


def layer(part: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if part in names)


def all_imports() -> Iterator[tuple[str, str]]:
    """Every part that imports another, and that other: also inside of functions, and for type checkers."""
    for module, path in MODULES.items():
        for other, _ in imports(ast.walk(ast.parse(path.read_bytes()))):
            if part_of(module) != part_of(other):
                yield part_of(module), part_of(other)


def test_every_part_has_a_layer() -> None:
    assert {part_of(module) for module in MODULES} == frozenset().union(*LAYERS)


def test_a_part_imports_what_is_below_it() -> None:
    assert {(part, other) for part, other in all_imports() if layer(other) >= layer(part)} == set(UPWARDS)


def test_modules_import_each_other_in_no_circle() -> None:
    """At the top of files. Categories of operations do: an operation is composed of those of other categories."""
    graph = {
        module: {
            other
            for other, _ in imports(ast.parse(path.read_bytes()).body)
            if other != module and not part_of(other) == part_of(module) == "ops.*"
        }
        for module, path in MODULES.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


def test_models_optimizers_and_trainers_use_the_public_surface() -> None:
    """Of dispatch and the backends, they see what ``ember_ml.extend`` and ``ember_ml.backend`` list in ``__all__``."""
    used = 0
    for module, path in MODULES.items():
        if module.partition(".")[0] in ("export", "frames", "nn", "optim", "sklearn", "training"):
            for other, name in imports(ast.walk(ast.parse(path.read_bytes()))):
                assert not other.startswith(("dispatch", "shapes")), (module, other)
                if other.partition(".")[0] in ("backend", "extend"):
                    assert name in {"backend": backend, "extend": extend}[other].__all__, (module, other, name)
                    used += 1
    assert used > 20


def test_every_name_of_the_surface_is_defined() -> None:
    assert sorted(extend.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == extend.__all__
    # pytest adds names that are no identifiers to modules whose assertions it rewrites.
    public = {name for name in vars(extend) if name.isidentifier() and not name.startswith("_")}
    assert public == set(extend.__all__)


def test_few_modules_of_the_linter_serve_both_packages() -> None:
    found = {
        f"{node.module}.{alias.name}"
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "emberlint"
        for alias in node.names
    }
    assert found == {
        "emberlint.__version__",
        "emberlint.atomic",
        "emberlint.output.standard_output",
        "emberlint.rewrite.guides",  # tables of the documentation
    }
