"""SVG pictures in two themes, made of boxes, arrows, lines and text, for the scripts in this folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
ENGINES = {"numpy": "NumPy", "torch": "PyTorch", "mlx": "MLX", "jax": "JAX"}


class Theme(NamedTuple):
    """Colors of a picture. ``engines`` are those of the curves, in the order of ``ENGINES``."""

    name: str
    text: str
    muted: str
    line: str
    box: str
    strong: str
    accent: str
    on_accent: str
    engines: tuple[str, ...]


LIGHT = Theme(
    "light", "#1f2328", "#59636e", "#b5bcc4", "#f4f6f8", "#ffe9dc", "#b3400f", "#ffffff",
    ("#2f6fb5", "#c2500f", "#2e8049", "#7b4fb3"),
)  # fmt: skip
DARK = Theme(
    "dark", "#e6edf3", "#9aa5b1", "#4b5561", "#20272f", "#45281a", "#ff9a62", "#14181d",
    ("#6cb0f5", "#ff9a62", "#63cf85", "#c09bf2"),
)  # fmt: skip

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


class Picture:
    """Elements of an SVG file, added in the order in which they are drawn."""

    def __init__(self, width: int, height: int, title: str, theme: Theme) -> None:
        self.width, self.height, self.title, self.theme = width, height, title, theme
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, *, size: int = 15, color: str = "", anchor: str = "middle",
        bold: bool = False, mono: bool = False,
    ) -> None:  # fmt: skip
        """Add a line of text, whose baseline is at ``y``."""
        style = f' font-family="{_MONO}"' if mono else ""
        style += ' font-weight="600"' if bold else ""
        fill = color or self.theme.text
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"{style}>'
            f"{escape(text)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, lines: Sequence[str] = (), *, kind: str = ""
    ) -> None:
        """Add a box; its first line is bold. ``kind`` is empty, ``strong`` or ``accent``."""
        theme = self.theme
        fill = {"": theme.box, "strong": theme.strong, "accent": theme.accent}[kind]
        stroke = theme.accent if kind else theme.line
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="{fill}" stroke="{stroke}"/>'
        )
        color = theme.on_accent if kind == "accent" else ""
        start = y + height / 2 - 10 * (len(lines) - 1) + 5
        for i, line in enumerate(lines):
            faint = color or ("" if i == 0 else theme.muted)
            self.text(x + width / 2, start + 20 * i, line, size=16 if i == 0 else 13, bold=i == 0, color=faint)

    def line(
        self, points: Sequence[tuple[float, float]], *, color: str = "", width: float = 1.5, arrow: bool = False
    ) -> None:
        """Add a line through points, with an arrow at its end if ``arrow``."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        end = ' marker-end="url(#arrow)"' if arrow else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color or self.theme.muted}" stroke-width="{width:g}" '
            f'stroke-linejoin="round"{end}/>'
        )

    def bar(self, x: float, y: float, width: float, height: float, color: str) -> None:
        """Add a filled bar."""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" fill="{color}"/>'
        )

    def __str__(self) -> str:
        marker = (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="11" markerHeight="11" '
            'markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0 8 4 0 8z" fill="{self.theme.muted}"/></marker></defs>'
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" font-family="{_FONT}">\n<title>{escape(self.title)}</title>'
        )
        return "\n".join([head, marker, *self.parts, "</svg>\n"])


def figures(name: str) -> Any:
    """Figures that were measured, from a file of this folder."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def files(name: str, draw: Callable[[Theme], Picture]) -> dict[Path, str]:
    """Both variants of a picture, by file."""
    return {FOLDER / f"{name}-{theme.name}.svg": str(draw(theme)) for theme in (LIGHT, DARK)}
