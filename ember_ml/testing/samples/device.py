"""Calls about devices with the same result on every engine that has a CPU device."""

from __future__ import annotations

import numpy as np

from ember_ml.testing.samples import call

SMALL = np.array([[0.5, 1.0, -2.5], [3.0, -1.5, 0.0]], np.float32)

CALLS = {
    "get_device": [call(SMALL), call(1.0), call([1, 2])],
    "to_device": [call(SMALL, "cpu"), call(1, "cpu"), call(np.zeros((0, 2), np.int8), "cpu")],
    "get_available_devices": [call("numpy"), call(backend="numpy")],
    "set_default_device": [call(None), call(None, fallback=True)],
    "get_default_device": [call()],
    "is_available": [call("cpu"), call("abacus"), call(None), call(3)],
    "prefer_device": [call("cpu"), call("abacus", "cpu")],
    "synchronize": [call(), call("cpu")],
    "memory_usage": [call()],
    "memory_info": [call()],
}

# Results that are facts about the machine: they differ between engines, and between calls.
VARIES = {
    "get_device": "the device of a tensor that was made where the engine makes them",
    "get_default_device": "the engine's best device is another one on each engine",
    "memory_usage": "bytes in use at the moment of the call",
    "memory_info": "bytes in use at the moment of the call",
}
