"""The life of a call: what happens between ``ops.add(x, y)`` and its result."""

from __future__ import annotations

from drawing import Picture, Theme


def draw(theme: Theme) -> Picture:
    """Picture of the fast path on the left and of the general path on the right."""
    picture = Picture(960, 640, "The life of a call: tensors of one engine and one dtype go straight to the engine; "
                      "everything else is unwrapped, converted and promoted first", theme)  # fmt: skip
    picture.box(60, 20, 300, 50, ["ops.add(x, y)"], kind="accent")
    picture.box(
        60, 110, 300, 74, ["fast path", "tensors of one engine, of one dtype", "that needs no cast?"], kind="strong"
    )
    picture.box(
        60,
        420,
        300,
        74,
        ["the engine's function", "np.add, torch.add, mx.add, jnp.add;", "or the definition, in operations"],
    )
    picture.box(60, 560, 300, 54, ["result", "a tensor of the same engine"], kind="accent")
    picture.line([(210, 70), (210, 108)], arrow=True)
    picture.line([(210, 184), (210, 418)], arrow=True, color=theme.accent, width=3)
    picture.text(222, 300, "yes: the usual case", anchor="start", color=theme.accent, bold=True)
    picture.text(222, 320, "adds less than half a microsecond", anchor="start", size=13, color=theme.muted)
    picture.line([(210, 494), (210, 558)], arrow=True)
    steps = [
        ("unwrap", "EmberTensors become tensors of their engine"),
        ("choose the engine", "that of the tensors, else the active backend"),
        ("convert", "numbers, lists and NumPy arrays, on the same device"),
        ("promote", "one table of dtypes, then the operation's dtype rule"),
        ("check", "options and indices, where the engine does not"),
    ]
    for i, (name, said) in enumerate(steps):
        picture.box(520, 110 + 78 * i, 380, 54, [name, said])
        if i:
            picture.line([(710, 86 + 78 * i), (710, 108 + 78 * i)], arrow=True)
    picture.text(710, 96, "general path", bold=True)
    picture.line([(360, 147), (518, 137)], arrow=True)
    picture.text(436, 132, "no", color=theme.muted)
    picture.line([(520, 449), (362, 457)], arrow=True)
    picture.box(520, 560, 380, 54, ["error", "one class on every engine, and a note with the call"])
    picture.line([(360, 486), (518, 576)], arrow=True)
    picture.text(452, 520, "raises", color=theme.muted)
    picture.text(710, 526, "if an EmberTensor was given, the result is one", size=13, color=theme.muted)
    return picture
