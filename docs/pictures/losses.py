"""The loss of one program on every engine, which is one curve: ``python losses.py`` trains, and keeps the figures."""

from __future__ import annotations

import json
import math

from drawing import ENGINES, FOLDER, Picture, Theme, figures

STEPS = 120
WIDTHS = (11, 7.5, 4, 1.5)
LEGEND_END = 184


def draw(theme: Theme) -> Picture:
    """Curves of the engines, each thinner than the one below it."""
    found = figures("losses")
    curves: dict[str, list[float]] = {name: curve[:STEPS] for name, curve in found["losses"].items()}
    picture = Picture(
        960, 420, "The training loss of one program on every engine: the curves lie on top of each other", theme
    )
    left, right, top, bottom = 80, 930, 40, 360
    count = max(map(len, curves.values()))
    values = [value for curve in curves.values() for value in curve]
    low, high = math.log10(min(values)), math.log10(max(values))

    def place(i: int, value: float) -> tuple[float, float]:
        return left + (right - left) * i / (count - 1), top + (bottom - top) * (high - math.log10(value)) / (high - low)

    for power in range(math.ceil(low), math.floor(high) + 1):
        y = place(0, 10.0**power)[1]
        end = right if y > LEGEND_END else 620  # the legend is right of it
        picture.line([(left, y), (end, y)], color=theme.line, width=0.7)
        picture.text(left - 10, y + 5, f"{10.0**power:g}", size=13, anchor="end", color=theme.muted)
    picture.line([(left, top), (left, bottom), (right, bottom)], color=theme.muted)
    for i, color in enumerate(theme.engines):
        name = list(ENGINES)[i]
        if name in curves:
            points = [place(step, value) for step, value in enumerate(curves[name])]
            picture.line(points, color=color, width=WIDTHS[i])
            picture.line([(640, 68 + 24 * i), (690, 68 + 24 * i)], color=color, width=WIDTHS[i])
            picture.text(702, 73 + 24 * i, f"{ENGINES[name]}: {curves[name][-1]:.6f}", anchor="start")
    picture.text((left + right) / 2, 398, f"the first {STEPS} steps of {found['program']}", size=13, color=theme.muted)
    picture.text(left, 26, "training loss", anchor="start", size=13, color=theme.muted)
    picture.text(640, 48, f"loss of step {STEPS}", anchor="start", size=13, color=theme.muted)
    spread = max(max(row) - min(row) for row in zip(*curves.values(), strict=True))
    picture.text(640, 176, f"largest difference at any step: {spread:.0e}", anchor="start", size=13, color=theme.muted)
    return picture


def measure() -> None:
    """Train on every installed engine and keep the loss of every step."""
    import ember_ml
    from ember_ml import demo

    runs = [demo.run(name) for name in ENGINES if name in ember_ml.get_available_backends()]
    found = {"program": "ember-ml demo", "losses": {run.backend: [round(x, 7) for x in run.updates] for run in runs}}
    (FOLDER / "losses.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    measure()
