"""Run the tests of real packages after ``emberlint port --from numpy``, on each engine.

    pip download --no-deps --dest wheels numpy-financial==1.0.0 transforms3d==0.4.2 scikit-fuzzy==0.5.0
    for wheel in wheels/*.whl; do unzip -q "$wheel" -d packages; done
    EMBERLINT_PACKAGES=packages python tests/lint/porting.py

The packages are copied first. Their tests are not ported. The default dtype is float64, as in NumPy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from emberlint.commands import port
from emberlint.config import EMBER_TENSORS, Config

PACKAGES = ("numpy_financial", "transforms3d", "skfuzzy")
ENGINES = ("numpy", "torch", "mlx")
PLUGIN = "from ember_ml import ops\n\nops.set_default_dtype('float64')\n"


def passed(folder: Path, package: str, engine: str) -> tuple[int, int]:
    """Number of a package's tests that pass on an engine, and number of those that are not skipped."""
    paths = os.pathsep.join([str(folder), *(path or os.getcwd() for path in sys.path)])
    environment = {**os.environ, "EMBER_ML_BACKEND": engine, "PYTHONPATH": paths, "MPLBACKEND": "agg"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *(["-p", "width"] if engine else []),
        package,
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", last)}
    return counts.get("passed", 0), sum(counts.values())


def main() -> int:
    source = os.environ.get("EMBERLINT_PACKAGES")
    if not source:
        print("EMBERLINT_PACKAGES must be the folder with the unpacked packages", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="porting-") as name:
        folder = Path(name)
        (folder / "width.py").write_text(PLUGIN)
        for package in PACKAGES:
            shutil.copytree(Path(source) / package, folder / package)
            before = passed(folder, package, "")
            done = list(port.port([str(folder / package)], "numpy", Config(root=name, namespace=EMBER_TENSORS), []))
            for one in done:
                Path(one.path).write_bytes(one.after)
            changes = sum(one.rewritten.total() for one in done)
            shares = [port.share(done, place) for place in (0, 1)]
            print(f"{package}: {changes} changes, portable {shares[0]:.0%} before, {shares[1]:.0%} after", end="")
            print(f"; tests before {before[0]} of {before[1]}", end="", flush=True)
            for engine in ENGINES:
                good, total = passed(folder, package, engine)
                print(f", {engine} {good} of {total} ({good / total:.0%})", end="", flush=True)
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
