"""The cost of a call compared with other libraries, from the figures of ``benchmarks/dispatch.py``.

``python benchmarks/dispatch.py --ops add --sizes 4 --json - | python docs/pictures/dispatch.py`` keeps new figures.
"""

from __future__ import annotations

import json
import sys

from drawing import ENGINES, FOLDER, Picture, Theme, figures

WAYS = {
    "ember_ml": "Ember ML",
    "autoray": "autoray",
    "compat": "array-api-compat",
    "compat look-up": "array-api-compat, look-up",
    "keras": "Keras",
}

# Longer bars are cut off, as the others would be too short to compare.
LONGEST = 8.0


def draw(theme: Theme) -> Picture:
    """A group of bars for each engine: the time of a call as a multiple of the engine's own call."""
    found: dict[str, dict[str, float]] = figures("dispatch")["ratios"]
    rows = sum(len(ways) for ways in found.values())
    height = 70 + 22 * rows + 30 * len(found)
    picture = Picture(960, height, "The time of one call as a multiple of the engine's own call, by library", theme)
    left, right = 250, 860

    def x(ratio: float) -> float:
        return left + (right - left) * min(ratio, LONGEST) / LONGEST

    picture.text(
        20,
        26,
        "add of two tensors of 4 elements: time relative to the engine's own call",
        anchor="start",
        size=15,
        bold=True,
    )
    y = 48.0
    for engine, ways in found.items():
        picture.text(20, y + 16, ENGINES[engine], anchor="start", bold=True)
        for way, ratio in ways.items():
            picture.text(
                left - 10, y + 16, WAYS[way], size=13, anchor="end", color=theme.muted if way != "ember_ml" else ""
            )
            picture.bar(left, y + 3, x(ratio) - left, 16, theme.accent if way == "ember_ml" else theme.line)
            said = f"{ratio:.2f}x" if ratio <= LONGEST else f"{ratio:.0f}x, cut"
            picture.text(x(ratio) + 8, y + 16, said, size=13, anchor="start", bold=way == "ember_ml")
            y += 22
        y += 30
    picture.line([(x(1.0), 40), (x(1.0), y - 22)], color=theme.muted, width=1)
    picture.text(x(1.0), y - 6, "1x: the engine itself", size=13, color=theme.muted)
    return picture


def keep(report: list[dict[str, object]]) -> None:
    """Keep the ratios of a report of the benchmark."""
    ratios: dict[str, dict[str, float]] = {}
    for row in (row for row in report if row["case"] == "add(x, y)"):
        found: dict[str, float] = row["ratios"]  # type: ignore[assignment]
        ratios[str(row["engine"])] = {way: round(found[way], 2) for way in WAYS if way in found}
    (FOLDER / "dispatch.json").write_text(json.dumps({"ratios": ratios}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    keep(json.load(sys.stdin)["rows"])
