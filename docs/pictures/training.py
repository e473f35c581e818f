"""The time of a training step compared with native code, from the figures of ``benchmarks/training.py``.

``python benchmarks/training.py --json - | python docs/pictures/training.py`` keeps new figures.
"""

from __future__ import annotations

import json
import sys

from drawing import ENGINES, FOLDER, Picture, Theme, figures

MODELS = {"mlp": "MLP", "cnn": "CNN", "transformer": "transformer"}

# The end of the axis.
LONGEST = 1.25


def draw(theme: Theme) -> Picture:
    """A group of bars for each engine: the time of a step as a multiple of the hand-written one."""
    found: dict[str, dict[str, dict[str, float]]] = figures("training")["ratios"]
    rows = sum(len(modes) for models in found.values() for modes in models.values())
    height = 70 + 22 * rows + 24 * len(found)
    picture = Picture(960, height, "The time of a training step as a multiple of the hand-written one", theme)
    left, right = 250, 860

    def x(ratio: float) -> float:
        return left + (right - left) * min(ratio, LONGEST) / LONGEST

    picture.text(
        20,
        26,
        "A training step: time relative to the same step hand-written in the engine, shorter is faster",
        anchor="start",
        size=15,
        bold=True,
    )
    y = 48.0
    for engine, models in found.items():
        picture.text(20, y + 16, ENGINES[engine], anchor="start", bold=True)
        for model, modes in models.items():
            for mode, ratio in modes.items():
                picture.text(left - 10, y + 16, f"{MODELS[model]}, {mode}", size=13, anchor="end")
                picture.bar(left, y + 3, x(ratio) - left, 16, theme.accent if mode == "compiled" else theme.engines[0])
                # Beyond the line at 1, which would run through the figure.
                place = max(x(ratio), x(1.0)) if ratio > 0.9 else x(ratio)
                picture.text(place + 8, y + 16, f"{ratio:.2f}x", size=13, anchor="start")
                y += 22
        y += 24
    picture.line([(x(1.0), 40), (x(1.0), y - 16)], color=theme.muted, width=1)
    picture.text(x(1.0), y, "1x: hand-written in the engine", size=13, color=theme.muted)
    return picture


def keep(report: list[dict[str, object]]) -> None:
    """Keep the ratios of a report of the benchmark; eager steps of JAX, which have no target, are left out."""
    ratios: dict[str, dict[str, dict[str, float]]] = {}
    for row in (row for row in report if row["ratios"] and row["target"] is not None):
        found: dict[str, float] = row["ratios"]  # type: ignore[assignment]
        models = ratios.setdefault(str(row["engine"]), {})
        models.setdefault(str(row["case"]), {})[str(row["mode"])] = round(found["ember_ml"], 2)
    (FOLDER / "training.json").write_text(json.dumps({"ratios": ratios}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    keep(json.load(sys.stdin)["rows"])
