"""Installs each file in a folder of distributions into an empty environment, and runs the quick start there.

``python tests/check_distributions.py dist`` is part of ``make dist``. The source distribution is installed twice: with
the compiler of this machine, and with one that fails, as on a machine that has none. Each must contain the C extension
or not, as its name promises.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUICK_START = ROOT / "docs" / "quickstart.md"

PROBE = """
import importlib.util, os, sys
import ember_ml, emberlint
from ember_ml.dispatch import fast
assert ember_ml.__file__.startswith(sys.prefix), f"not the installed package: {ember_ml.__file__}"
assert ember_ml.__version__ == emberlint.__version__
for package in (ember_ml, emberlint):
    assert os.path.exists(os.path.join(os.path.dirname(package.__file__), "py.typed")), package.__name__
print(ember_ml.__version__, "extension" if importlib.util.find_spec("ember_ml.dispatch._fast") else "pure")
"""


def blocks() -> str:
    """The Python of the quick start that needs no engine but NumPy, as one program."""
    text = QUICK_START.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def run(*command: object, environment: dict[str, str] | None = None, cwd: object = None) -> str:
    """Output of a command that must succeed."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env={**clean, **(environment or {})}, cwd=cwd
    )
    if ran.returncode:
        sys.exit(f"{' '.join(str(word) for word in command)[:200]} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def check(path: Path, *, compiler: bool, extension: bool) -> None:
    """Install ``path`` into an empty environment and run what a new user would."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        python = scripts / "python"
        failing = {} if compiler else {"CC": "false", "CXX": "false"}
        run(python, "-m", "pip", "install", "--quiet", "--no-cache-dir", path.resolve(), environment=failing)
        work = Path(folder) / "work"
        work.mkdir()
        version, kind = run(python, "-c", PROBE, cwd=work).split()
        expected = "extension" if extension else "pure"
        if kind != expected:
            sys.exit(f"{path.name} must be installed as {expected}, got {kind}")
        (work / "quick.py").write_text(blocks(), encoding="utf-8")
        run(python, "quick.py", cwd=work, environment={"EMBER_ML_BACKEND": "numpy"})
        run(scripts / "ember-ml", "info", cwd=work)
        (work / "portable.py").write_text("from ember_ml import ops\n\nx = ops.ones(2)\n", encoding="utf-8")
        run(scripts / "emberlint", "portable.py", cwd=work)
        print(
            f"{path.name}: {version}, {kind}, {'with' if compiler else 'without'} a compiler: the quick start passes"
            f" ({time.monotonic() - start:.0f} s)"
        )


def main() -> None:
    """Check every file of the folder that is given."""
    folder = Path(sys.argv[1])
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    pure = [path for path in wheels if path.name.endswith("-py3-none-any.whl")]
    if not (len(pure) == 1 and len(wheels) >= 2 and len(sources) == 1):
        sys.exit(f"{folder} must have a source distribution, a pure wheel and one with the extension, got {wheels}")
    for wheel in wheels:
        check(wheel, compiler=False, extension=wheel not in pure)
    check(sources[0], compiler=False, extension=False)
    check(sources[0], compiler=True, extension=True)


if __name__ == "__main__":
    main()
