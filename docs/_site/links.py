"""Dead links: of the Markdown of the repository, and of the HTML of the built site."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from _site import ROOT
from _site.staging import links, repository_pages


def dead_links_of_sources() -> list[str]:
    """Links in the Markdown of the repository that lead to no file, or to no heading of it."""
    found = []
    for page in repository_pages():
        for target in links(page.read_text(encoding="utf-8")):
            name, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = Path(os.path.normpath(page.parent / name)) if name else page
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
                found.append(f"{page.relative_to(ROOT)}: {target}")
    return found


def anchors(page: Path) -> set[str]:
    """Anchors that hosts of repositories give to the headings of a Markdown file."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        names = [slug, *(f"{slug}-{i}" for i in range(1, 20))]
        found.add(next(name for name in names if name not in found))
    return found


class _Page(HTMLParser):
    """Addresses and anchors of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for key in ("id", "name"):
            if given.get(key):
                self.anchors.add(str(given[key]))
        for key in ("href", "src"):
            address = given.get(key)
            if address:
                self.addresses.append(address)
                if tag != "a" and given.get("rel") != "canonical":
                    self.loaded.append(address)


def dead_links(folder: Path) -> list[str]:
    """Links of a built site that lead nowhere, and what its pages load from elsewhere."""
    # The theme has a template in its folder, which is no page.
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.relative_to(folder).parts]
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in paths}
    return [
        f"{path.relative_to(folder)}: {address}" for path, page in pages.items() for address in _dead(path, page, pages)
    ]


def _dead(path: Path, page: _Page, pages: dict[Path, _Page]) -> Iterator[str]:
    yield from (f"{address} (loaded from a network)" for address in page.loaded if urlsplit(address).netloc)
    for address in dict.fromkeys(page.addresses):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
        known = pages[target].anchors if target in pages and parts.fragment else {parts.fragment}
        if not target.is_file() or unquote(parts.fragment) not in known:
            yield address
