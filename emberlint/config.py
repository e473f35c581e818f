"""Configuration: ``[tool.emberlint]`` of the nearest ``pyproject.toml``, overridden by the command line."""

from __future__ import annotations

import os
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from emberlint.codes import rule_modules

NAMESPACE = "ember_ml.ops"
# The namespace whose functions return EmberTensors.
EMBER_TENSORS = "ember_ml.nn.tensor"
ENGINES = ("numpy", "torch", "mlx", "jax", "tensorflow", "cupy")
TARGETS = ("numpy", "torch", "mlx", "jax")


class ConfigError(Exception):
    """An invalid configuration; the message says where and why."""


class Config(NamedTuple):
    """Settings of a run. ``root`` is the folder that patterns and paths are relative to.

    ``layers`` maps path patterns to the engines that matching files may import; ``targets`` are the engines that the
    code must run on; ``target`` is what fixes use: ``ember`` (operations) or ``array-api`` (the array API standard).
    """

    root: str = "."
    select: tuple[str, ...] = ("EMB",)
    ignore: tuple[str, ...] = ()
    targets: tuple[str, ...] = TARGETS
    target: str = "ember"
    namespace: str = NAMESPACE
    layers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    matrix: str = ""
    baseline: str = ""
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()


_KEYS = {
    "select": list,
    "ignore": list,
    "targets": list,
    "target": str,
    "namespace": str,
    "layers": dict,
    "matrix": str,
    "baseline": str,
    "exclude": list,
    "per-file-ignores": dict,
}


@cache
def load(folder: str) -> Config:
    """Configuration for files in a folder, from the nearest ``pyproject.toml`` with a ``[tool.emberlint]``.

    The defaults apply if there is none.
    """
    here = folder = os.path.abspath(folder)
    root = ""
    while True:
        path = os.path.join(here, "pyproject.toml")
        if os.path.isfile(path):
            table = _table(path)
            if table is not None:
                return from_table(table, here, path)
            root = root or here
        parent = os.path.dirname(here)
        if parent == here:
            break
        here = parent
    current = os.getcwd()
    inside = (folder + os.sep).startswith(current.rstrip(os.sep) + os.sep)
    return Config(root=root or (current if inside else folder))


def _table(path: str) -> dict[str, Any] | None:
    import tomllib

    with open(path, "rb") as file:
        data = file.read()
    if b"emberlint" not in data:
        return None
    try:
        table = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    tools = table.get("tool", {})
    tool: dict[str, Any] | None = tools.get("emberlint") if isinstance(tools, dict) else None
    if tool is not None and not isinstance(tool, dict):
        raise ConfigError(f"{path}: [tool.emberlint] must be a table, got {tool!r}")
    return tool


def from_table(table: dict[str, Any], root: str, where: str) -> Config:
    """Configuration from a table; an unknown key is an error."""
    settings: dict[str, Any] = {"root": root}
    for key, value in table.items():
        expected = _KEYS.get(key)
        if expected is None:
            raise ConfigError(f"{where}: unknown key `{key}` in [tool.emberlint]; keys: {', '.join(_KEYS)}")
        if not isinstance(value, expected):
            descriptions = {list: "a list of strings", str: "a string", dict: "a table"}
            raise ConfigError(f"{where}: `{key}` in [tool.emberlint] must be {descriptions[expected]}, got {value!r}")
        if expected is list:
            value = _strings(value, key, where)
        elif expected is dict:
            value = tuple((pattern, _strings(items, f"{key}.{pattern}", where)) for pattern, items in value.items())
        settings[key.replace("-", "_")] = value
    config = Config(**settings)
    check(config, where)
    return config


def check(config: Config, where: str) -> None:
    """Raise if a setting names a rule, an engine or a target that does not exist."""
    for key, names in (("select", config.select), ("ignore", config.ignore), *config.per_file_ignores):
        for name in names:
            if name != "ALL" and not any(code.startswith(name) for code in rule_modules()):
                raise ConfigError(f"{where}: `{key}` must name rules, got {name!r}; run `emberlint rules` for a list")
    for name in config.targets:
        if name not in ENGINES:
            raise ConfigError(f"{where}: `targets` must be engines ({', '.join(ENGINES)}), got {name!r}")
    if not all(part.isidentifier() for part in config.namespace.split(".")):
        raise ConfigError(f"{where}: `namespace` must be a dotted module name, got {config.namespace!r}")
    if config.target not in ("ember", "array-api"):
        raise ConfigError(f"{where}: `target` must be ember or array-api, got {config.target!r}")


def _strings(value: Any, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: `{key}` in [tool.emberlint] must be a list of strings, got {value!r}")
    return tuple(value)


@cache
def _pattern(pattern: str) -> Any:
    """Path pattern as a regular expression.

    ``*`` matches within a folder, ``**`` across folders, and a folder matches everything in it. Backslashes are treated
    as slashes, and a leading ``./`` is ignored.
    """
    import re

    text = pattern.replace("\\", "/").removeprefix("./").rstrip("/")
    out = ""
    i = 0
    while i < len(text):
        if text.startswith("**/", i):
            out += "(?:.*/)?"
            i += 3
        elif text.startswith("**", i):
            out += ".*"
            i += 2
        elif text[i] == "*":
            out += "[^/]*"
            i += 1
        elif text[i] == "?":
            out += "[^/]"
            i += 1
        else:
            out += re.escape(text[i])
            i += 1
    return re.compile(out + "(?:/.*)?")


def matches(path: str, pattern: str) -> bool:
    """Whether a path relative to the root matches a pattern.

    >>> matches("pkg/backend/torch/math.py", "pkg/backend/torch")
    True
    >>> matches("pkg/a/b.py", "pkg/*.py")
    False
    >>> matches("pkg/a/b.py", "./pkg/a")
    True
    """
    return _pattern(pattern).fullmatch(path) is not None


def relative(path: str, config: Config) -> str:
    """Path relative to the root, with forward slashes, as patterns match it."""
    full = path if path.startswith("/") else f"{os.getcwd()}/{path}"
    root = config.root.rstrip("/") + "/"
    if full.startswith(root) and root.startswith("/") and "/." not in full and "//" not in full:
        return full[len(root) :]  # the fast path; the general path below has the same result
    try:
        return os.path.relpath(path, config.root).replace(os.sep, "/")
    except ValueError:
        return path.replace(os.sep, "/")


_FOLDERS = ("backend", "backends")


def layer(path: str, config: Config) -> frozenset[str] | None:
    """Engines that a file may import; ``None`` for a frontend, which may import none.

    The first matching pattern of ``layers`` decides. Otherwise, a folder named after an engine inside of ``backend`` or
    ``backends`` may import that engine and NumPy, which represents host memory.
    """
    for pattern, engines in config.layers:
        if matches(path, pattern):
            return frozenset(engines)
    engine = backend_of(path)
    return frozenset({engine, "numpy", "ml_dtypes"}) if engine else None


def is_backend(path: str) -> bool:
    """Whether a file belongs to the backend of an engine, according to its path."""
    return backend_of(path) != ""


@cache
def is_manager(path: str) -> bool:
    """Whether a file is in the folder of the backends but belongs to none, such as ``backend/__init__.py``."""
    parts = path.split("/")
    return len(parts) > 1 and parts[-2] in _FOLDERS and not is_backend(path)


@cache
def backend_of(path: str) -> str:
    """Engine whose backend a file belongs to, according to its path; empty if there is none.

    >>> backend_of("pkg/backend/torch/math.py"), backend_of("pkg/backend/torch_backend.py"), backend_of("pkg/torch.py")
    ('torch', 'torch', '')
    """
    parts = path.split("/")
    for parent, child in pairwise(parts):
        name = child.removesuffix(".py").removesuffix("_backend")
        if parent in _FOLDERS and name in ENGINES:
            return name
    return ""
