"""Files in a folder that goes when the process does: written by the operations, or by NumPy alone."""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path

import numpy as np

from ember_ml.testing.samples import call

_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
HERE = Path(_folder.name)

F = np.float32
X = np.array([[1.5, -2.0, np.nan], [4.0, np.inf, -0.0]], F)
COUNTS = np.arange(5, dtype=np.int16)
EMPTY = np.zeros((0, 3), F)

np.save(HERE / "plain.npy", X)
np.save(HERE / "swapped.npy", np.asfortranarray(X).astype(">f4"))
np.savez(HERE / "plain.npz", x=X, counts=COUNTS)
np.savez_compressed(HERE / "compressed.npz", x=X, empty=EMPTY)
_NUMBERED: list[np.ndarray] = [X, COUNTS, EMPTY]
for step, values in enumerate(_NUMBERED):
    np.save(HERE / f"numbered-{step:08d}.npy", values)

CALLS = {
    "save": [
        call(HERE / "one.safetensors", X),
        call(str(HERE / "one.npy"), X),
        call(HERE / "one.npz", X),
        call(HERE / "nested.safetensors", {"a": 1, "b": [None, "text", (True, 2.5)]}, {"by": "us"}),
        call(HERE / "list.npz", [X, COUNTS, EMPTY]),
        call(HERE / "nothing.safetensors", {}),
    ],
    "load": [
        call(HERE / "plain.npy"),
        call(str(HERE / "plain.npz")),
        call(HERE / "compressed.npz", "cpu"),
        call(HERE / "swapped.npy", device="cpu"),
        call(HERE / "plain.npz", with_metadata=True),
    ],
    "save_checkpoint": [
        call(HERE / "run", [X, COUNTS], 12),
        call(HERE / "run" / "model.npz", (X, EMPTY), step=3, keep=1),
    ],
    "load_checkpoint": [
        call(HERE / "numbered.npy"),
        call(HERE / "numbered.npy", 1),
        call(str(HERE / "numbered.npy"), step=0),
        call(HERE / "plain.npz"),
    ],
}
