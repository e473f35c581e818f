"""The folder that Sphinx builds from: the pages of the repository, adapted, and those that are generated.

The pages read as they are where the repository is hosted. For the site:

- Links to other pages lead to their pages here, and links to other files to their source.
- A list between ``<!-- cards -->`` and ``<!-- end -->`` becomes cards.
- A ``<picture>`` with a light and a dark image follows the theme, and scrolls in a narrow window.
- The words after the language of a fence, which tell the tests what it needs, are not shown; a file is its caption.
- Sections of ``docs/index.md`` that list pages are the entries of the navigation. Pages of ``docs/`` that are in no
  list belong to the guides.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import ember_ml
from _site import ROOT, classes, inventory, operations, rules
from _site.examples import Sessions
from ember_ml.dispatch import REGISTRY
from ember_ml.tools import LOCK, measuring
from ember_ml.tools import operations as operation_list
from ember_ml.tools.page import page as matrix_page

GUIDES, REFERENCE = "Guides", "Reference"
MATRIX = "operation_matrix.html"

# Pages of the repository that the site generates anew, with links to a page for each item.
REPLACED = ("operations", "layers")

# Pages whose heading in the repository is the name of the project, which is that of the front page here.
TITLES = {"readme": "Install and first steps"}


def repository_pages() -> dict[Path, str]:
    """Markdown files of the repository that are pages of the site, and their documents."""
    found = {path: path.stem for path in sorted(ROOT.glob("docs/*.md"))}
    others = {path: path.stem.lower() for path in sorted(ROOT.glob("*.md"))}
    others |= {path: path.parent.name for path in [ROOT / "benchmarks" / "README.md"] if path.exists()}
    for path, name in others.items():
        if name in found.values():
            raise ValueError(f"{path.name} must have a name that no page of docs/ has, got {name}")
    return found | others


_CODE = r"^(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$|(?P<span>`+)[^`].*?(?P=span)(?!`)"
_LINK = re.compile(_CODE + r"|\]\((?P<target>[^)\s]+)\)", re.MULTILINE | re.DOTALL)


def links(text: str) -> Iterator[str]:
    """Targets of the links of a Markdown text, outside of code."""
    return (match["target"] for match in _LINK.finditer(text) if match["target"])


class Site:
    """Sources of the site by path, and the files of the repository that they link to."""

    def __init__(self) -> None:
        self.pages = repository_pages()
        self.texts: dict[str, str] = {}
        self.summaries: dict[str, str] = {}
        self.sources: set[str] = set()

    def add(self, docname: str, text: str) -> None:
        """Add a generated page."""
        if docname in self.texts:
            raise ValueError(f"a page must have a name of its own, got two of {docname}")
        self.texts[docname] = text
        self.sources |= {match.rpartition(":")[0] for match in re.findall(r"\{source\}`([^`]+)`", text)}
        self.summaries[docname] = _summary(text)

    def adapted(self, path: Path) -> str:
        """Text of a page of the repository, for the site."""
        text = path.read_text(encoding="utf-8")
        text = _PICTURE.sub(_themed, text)

        def replaced(match: re.Match[str]) -> str:
            if match["fence"]:
                return _fence(match)
            return f"]({self._target(path, match['target'])})" if match["target"] else match[0]

        return _LINK.sub(replaced, text)

    def _target(self, page: Path, target: str) -> str:
        """Target of a link on the site."""
        if re.match(r"[a-z]+:|#", target):
            return target
        name, mark, anchor = target.partition("#")
        path = Path(os.path.normpath(page.parent / name))
        docname = self.pages.get(path)
        if docname == "operations" and anchor:
            return f"/operations/{anchor}/index.md"
        if docname == "layers" and anchor:
            titles = {name.lower(): name for name in (e.title for e in inventory.groups()[0].entries)}
            return f"/layers/{titles[anchor]}.md" if anchor in titles else f"/layers.md#{anchor}"
        if docname is not None:
            return f"/{docname}.md{mark}{anchor}"
        if path.suffix in (".svg", ".png"):
            return target
        relative = str(path.relative_to(ROOT))
        if not path.is_file():
            raise ValueError(f"{page.name}: a link must lead to a file, got {target}")
        self.sources.add(relative)
        return f"source:{relative}"


def _fence(match: re.Match[str]) -> str:
    language, *words = match["info"].split() or [""]
    if language.startswith("{"):
        return match[0]
    files = [word for word in words if "/" in word or word.endswith(".py")]
    if files:
        return f"{match['fence']}{{code-block}} {language}\n:caption: {files[0]}\n\n{match['text']}{match['fence']}"
    return f"{match['fence']}{language}\n{match['text']}{match['fence']}"


_PICTURE = re.compile(
    r"<picture>\s*<source[^>]*dark[^>]*srcset=\"(?P<dark>[^\"]+)\"[^>]*>\s*"
    r"<img alt=\"(?P<alt>[^\"]*)\" src=\"(?P<light>[^\"]+)\"[^>]*>\s*</picture>"
)


def _themed(match: re.Match[str]) -> str:
    """Two images, of which the theme shows one, in a block that scrolls if the window is narrow."""
    images = [
        f"```{{image}} {match[kind].removeprefix('docs/')}\n:alt: {match['alt']}\n:class: only-{kind} picture\n```\n"
        for kind in ("light", "dark")
    ]
    return "\n".join([":::{div} pictures", *images, ":::\n"])


class Listed(NamedTuple):
    """An item of a list of pages: its title, its document and what it says."""

    title: str
    docname: str
    text: str


_ITEM = re.compile(r"^- \[([^\]]+)\]\(/?([^)#]+)\.md\):? ?(.*(?:\n  .*)*)", re.MULTILINE)
_CARDS = re.compile(r"<!-- cards -->\n(.*?)<!-- end -->", re.DOTALL)


def _items(text: str) -> list[Listed]:
    return [Listed(title, name, re.sub(r"\s+", " ", said).strip()) for title, name, said in _ITEM.findall(text)]


def _cards(items: list[Listed]) -> str:
    lines = ["::::{grid} 1 2 2 3\n:gutter: 3\n"]
    for item in items:
        # The card is a link, and a link has none in it.
        text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", item.text)
        text = text[:1].upper() + text[1:]
        lines.append(f":::{{grid-item-card}} {item.title}\n:link: /{item.docname}\n:link-type: doc\n\n{text}\n:::\n")
    return "\n".join([*lines, "::::\n"])


def _toctree(lines: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", "", *lines, "```", ""])


def _front_page(site: Site, generated: list[Listed]) -> None:
    """Add the front page, and a page for each of its sections that list pages."""
    text = site.adapted(ROOT / "docs" / "index.md")
    sections = {
        title: _items(body) for title, body in re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", text, re.MULTILINE)
    }
    sections = {title: items for title, items in sections.items() if items}
    listed = {item.docname for items in sections.values() for item in items} | {"index"}
    for docname in site.pages.values():
        if docname not in listed:
            sections[GUIDES].append(Listed(_title(site.texts[docname]), docname, site.summaries[docname]))
    known = {item.docname for item in sections[REFERENCE]}
    sections[REFERENCE] += [item for item in generated if item.docname not in known]
    parts: list[str] = []
    for title, items in sections.items():
        name = re.sub(r"\W+", "-", title.lower())
        tree = _toctree([f"{item.title} </{item.docname}>" for item in items])
        # The pages that it lists are the results of the search.
        site.add(name, f"---\nno-search: true\n---\n\n# {title}\n\n{_cards(items)}\n{tree}")
        parts.append(f"/{name}")

    def cards(match: re.Match[str]) -> str:
        first = _items(match[1])[0].docname
        section = next(items for items in sections.values() if first in {item.docname for item in items})
        return _cards(section)

    site.add("index", _CARDS.sub(cards, text) + _toctree(parts))


def _title(text: str) -> str:
    match = re.search(r"^# (.+)$", text, re.MULTILINE)
    return match[1] if match else ""


def _titled(text: str, title: str) -> str:
    """Text of a page with another heading."""
    return re.sub(r"^# .+$", f"# {title}", text, count=1, flags=re.MULTILINE)


def _summary(text: str) -> str:
    """First sentence of a page, as plain text, for the results of the search."""
    text = re.sub(r"\A---\n.*?\n---\n\n", "", text, flags=re.DOTALL)
    body = re.sub(r"^(`{3,}|:{3,}).*?^\1$", "", text.partition("\n")[2], flags=re.MULTILINE | re.DOTALL)
    described = re.search(r"^:::\{py:\w+\} .*\n\n(.+)", text, re.MULTILINE)
    paragraphs = [described[1]] if described else re.findall(r"^(?![#<|\-:!{\[]).+(?:\n.+)*", body, re.MULTILINE)
    first = re.sub(r"\s+", " ", paragraphs[0]) if paragraphs else ""
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)|`+([^`]+)`+", lambda m: m[1] or m[2], first)
    return re.split(r"(?<=\.)\s", plain)[0]


def stage(sessions: Mapping[str, Sessions]) -> Site:
    """All sources of the site, with these results of the examples by engine."""
    site = Site()
    for path, docname in site.pages.items():
        if docname not in (*REPLACED, "index"):
            text = site.adapted(path) + (_MATRIX if docname == "matrix" else "")
            site.add(docname, _titled(text, TITLES[docname]) if docname in TITLES else text)
    categories = operation_list.categories()
    for operation in REGISTRY.values():
        site.add(inventory.page_of(operation), operations.page(operation, sessions))
    for category in categories:
        names = [operation.name for operation in REGISTRY.values() if operation.category == category]
        site.add(f"operations/{category}/index", operations.category_page(category, names))
    site.add("operations", operations.index_page(categories))
    generated = []
    for group in inventory.groups():
        for docname, text in classes.pages(group, sessions).items():
            site.add(docname, text)
        generated.append(Listed(group.title, classes.index_name(group), group.text))
    for docname, text in rules.pages().items():
        site.add(docname, text)
    generated.append(Listed("Rules of emberlint", "rules", "what each rule finds, why, and what to write instead."))
    _front_page(site, generated)
    return site


_MATRIX = f"""
## The matrix of this version

[Open it as a page of its own](source:{MATRIX}), or use it here:

```{{raw}} html
<iframe class="matrix" src="{MATRIX}" title="The operation matrix"></iframe>
```
"""


def _document(folder: str, line: str) -> str:
    """Document that a line of a toctree in a folder names."""
    name = re.sub(r".*<(.+)>$", r"\1", line)
    return name[1:] if name.startswith("/") else folder + name


def keep_only(site: Site, prefixes: Sequence[str]) -> None:
    """Remove the generated pages that are in folders and begin with none of these, and the links to them."""
    kept = {
        name: text
        for name, text in site.texts.items()
        if "/" not in name or name.endswith("/index") or name.startswith(tuple(prefixes))
    }

    def linked(match: re.Match[str]) -> str:
        return match[0] if match[2] in kept else match[1]

    def listed(folder: str, match: re.Match[str]) -> str:
        names = [line for line in match[2].splitlines() if _document(folder, line) in kept]
        return f"{match[1]}{''.join(f'{name}{chr(10)}' for name in names)}```"

    for name, text in kept.items():
        text = re.sub(r"\[([^\]]+)\]\(/([^)#]+)\.md(?:#[^)]*)?\)", linked, text)
        folder = f"{name.rpartition('/')[0]}/" if "/" in name else ""
        kept[name] = re.sub(r"(```\{toctree\}\n:hidden:\n\n)(.*?)```", partial(listed, folder), text, flags=re.DOTALL)
    site.texts = kept


def write(site: Site, folder: Path) -> None:
    """Write the sources; files that are the same keep their time, so that Sphinx does not read them again."""
    files = {f"{docname}.md": text for docname, text in site.texts.items()}
    files["summaries.json"] = json.dumps(site.summaries)
    files["sources.json"] = json.dumps(sorted(site.sources))
    files[f"extra/{MATRIX}"] = matrix_page(operation_list.entries(engines=_engines()), measuring.read(LOCK))
    for path in sorted((ROOT / "docs" / "pictures").glob("*.svg")):
        files[f"pictures/{path.name}"] = path.read_text(encoding="utf-8")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.rglob("*.*"):
        if path.is_file() and str(path.relative_to(folder)) not in files:
            path.unlink()


def _engines() -> list[str]:
    return [name for name in ("numpy", "torch", "mlx", "jax") if name in ember_ml.get_available_backends()]
