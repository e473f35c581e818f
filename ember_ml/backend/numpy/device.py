"""Devices and memory on NumPy."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


def to_device(x: Any, device: str, /) -> Any:
    return x


def synchronize(device: str | None = None) -> None:
    return None


def memory_info(device: str | None = None) -> dict[str, int | None]:
    return {
        "allocated": _status("/proc/self/status", "VmRSS") or _peak(),
        "peak": _status("/proc/self/status", "VmHWM") or _peak(),
        "total": _pages("SC_PHYS_PAGES"),
        "free": _status("/proc/meminfo", "MemAvailable") or _pages("SC_AVPHYS_PAGES"),
    }


def _status(path: str, key: str) -> int | None:
    """Value in bytes from a status file of the Linux kernel, which reports KiB."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:")), None)


def _peak() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _pages(name: str) -> int | None:
    if name not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
