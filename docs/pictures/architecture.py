"""The layers of the library, from a program to the engines."""

from __future__ import annotations

from drawing import ENGINES, Picture, Theme


def draw(theme: Theme) -> Picture:
    """Picture of the layers; each uses only what is below it."""
    picture = Picture(960, 520, "The layers of Ember ML: your program, networks and training, transforms, operations, "
                      "dispatch, one backend per engine, the engines", theme)  # fmt: skip
    left, width = 150, 780
    rows = [
        (20, ["your program"], ""),
        (92, ["nn, optim, training", "layers, optimizers, the trainer: written in operations alone"], ""),
        (
            164,
            ["transform, random, distributed", "gradients, vectorization, compilation; one stream of bits; ranks"],
            "",
        ),
        (236, ["ops", "one documented function per operation, one file per category"], "strong"),
        (308, ["dispatch", "converts, promotes and chooses the engine, once, for every operation"], "accent"),
    ]
    for y, lines, kind in rows:
        picture.box(left, y, width, 54, lines, kind=kind)
    gap, part = 16, (width - 3 * 16) / 4
    for i, (name, title) in enumerate(ENGINES.items()):
        x = left + i * (part + gap)
        picture.box(x, 380, part, 54, [f"backend/{name}", "only what differs"])
        picture.box(x, 452, part, 48, [title])
        picture.line([(x + part / 2, 434), (x + part / 2, 450)], arrow=True)
    for y in (74, 146, 218, 290, 362):
        picture.line([(left + width / 2, y), (left + width / 2, y + 16)], arrow=True)
    for y, word, said in ((268, "what", "ops/"), (340, "who", "dispatch/"), (412, "how", "backend/")):
        picture.text(130, y - 4, word, anchor="end", bold=True, color=theme.accent)
        picture.text(130, y + 14, said, size=13, anchor="end", color=theme.muted, mono=True)
    return picture
