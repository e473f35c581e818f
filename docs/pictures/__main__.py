"""``python docs/pictures`` draws every picture in both themes; ``--check`` says which are not current."""

from __future__ import annotations

import sys

import architecture
import call
import dispatch
import losses
import training
from drawing import files

PICTURES = {
    "architecture": architecture.draw,
    "call": call.draw,
    "losses": losses.draw,
    "dispatch": dispatch.draw,
    "training": training.draw,
}


def main() -> int:
    """Write the pictures, or with ``--check`` compare them with the files."""
    stale = 0
    for name, draw in PICTURES.items():
        for path, text in files(name, draw).items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale += 1
                print(path.name, "is not current" if "--check" in sys.argv else "written")
                if "--check" not in sys.argv:
                    path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
