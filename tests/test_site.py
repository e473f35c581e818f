"""The documentation site: every operation, layer and rule has a page, no link is dead, and search and tabs work.

The sources of all pages are generated here, and some of them built. `make docs` builds all pages, and runs these tests
on them with ``--site``.
"""

from __future__ import annotations

import copy
import doctest
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from browser import chromium

import ember_ml
from ember_ml import backend as backends
from ember_ml import models, nn, optim, training
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY
from emberlint.codes import rule_modules

ROOT = Path(__file__).parents[1]
ENGINES = [name for name in backends.OWN if name in ember_ml.get_available_backends()]

# What is built here of the generated pages.
CATEGORY = "activations"
BUILT = (f"operations/{CATEGORY}", "operations/dtypes", "schedules", "rules/EMB2")

every_engine = pytest.mark.skipif(
    not set(backends.OWN) <= set(ENGINES), reason="the pages of operations name every engine"
)


def part(name: str) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        return importlib.import_module(f"_site.{name}")


@pytest.fixture(scope="module")
def sessions() -> dict[str, Any]:
    """What docstrings show, in place of the results of all examples; those of softmax are run."""
    parse = doctest.DocTestParser().get_examples
    written = {
        docname: [(example.source, example.want) for example in parse(text)]
        for docname, (text, _) in part("inventory").examples().items()
    }
    softmax = "operations/activations/softmax"
    return {engine: written | part("examples").run(engine, [softmax]) for engine in ENGINES}


@pytest.fixture(scope="module")
def site(sessions: dict[str, Any]) -> Any:
    return part("staging").stage(sessions)


@every_engine
def test_every_operation_has_a_page(site: Any) -> None:
    for operation in REGISTRY.values():
        text = site.texts[f"operations/{operation.category}/{operation.name}"]
        assert text.startswith(f"# {operation.name}\n")
        sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert {"Example", "Dtypes", "Engines", "Source"} <= set(sections), operation
        assert ("Errors" in sections) == bool(re.search(rf"\b{operation.name}\(", _messages())), operation
        assert "See also" in sections, operation
        assert text.count(":::{tab-item}") == len(ENGINES)
        assert re.search(rf"\{{source\}}`ember_ml/ops/{operation.category}\.py:\d+`", text)
    pages = [name for name in site.texts if re.fullmatch(r"operations/\w+/(?!index$)\w+", name)]
    assert len(pages) == len(REGISTRY)


def _messages() -> str:
    return (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")


@every_engine
def test_everything_else_that_is_public_has_a_page(site: Any) -> None:
    layers = {getattr(nn.modules, name).__name__ for name in nn.modules.__all__ if name != "activations"}
    assert {name.removeprefix("layers/") for name in site.texts if name.startswith("layers/")} == layers
    for name in optim.__all__:
        assert name == "schedules" or f"optimizers/{name}" in site.texts
    for name in training.__all__:
        assert f"training/{name}" in site.texts
    assert {name for name in site.texts if name.startswith("models/")} == {
        f"models/{name}" for name in ("index", "Decoder", *models.__all__)
    }
    for name in ("distributed/all_sum", "interop/onnx", "interop/NeuralClassifier", "backends/use_backend"):
        assert name in site.texts
    assert "`resume` (`Any`, default `None`)\n: directory" in site.texts["training/Trainer"].partition("### fit")[2]
    for code in rule_modules():
        assert site.texts[f"rules/{code}"].startswith(f"# {code}: ")
        assert "## Use instead" in site.texts[f"rules/{code}"]
        assert f"(/rules/{code}.md)" in site.texts["rules"]
    assert sum(name.startswith("rules/") for name in site.texts) == len(rule_modules())


@every_engine
def test_every_generated_page_is_in_an_index_and_described(site: Any) -> None:
    listed = "\n".join(text for name, text in site.texts.items() if "{toctree}" in text)
    for name, text in site.texts.items():
        short = name.rpartition("/")[2]
        assert name == "index" or re.search(
            rf"^(.*<)?/?({re.escape(name)}|{re.escape(short)})>?$", listed, re.MULTILINE
        ), name
        assert site.summaries[name] or "no-search: true" in text, name


def test_every_page_of_the_repository_is_on_the_front_page() -> None:
    staging = part("staging")
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / target).resolve() for target in staging.links(text)}
    assert {path for path in staging.repository_pages() if path not in linked} == {ROOT / "docs" / "index.md"}


def test_links_of_the_repository_lead_to_files_and_headings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    links = part("links")
    assert links.dead_links_of_sources() == []
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n[a](other.md) [b](#a-page) [c](#none) `[d](code.md)`\n\n```\n[e](fence.md)\n```\n")
    monkeypatch.setattr(links, "repository_pages", lambda: {page: "page"})
    monkeypatch.setattr(links, "ROOT", tmp_path)
    assert links.dead_links_of_sources() == ["page.md: other.md", "page.md: #none"]


def test_dead_links_of_html_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a><a href="b.html#there">x</a><a href="c.html">x</a>')
    (tmp_path / "b.html").write_text('<p id="here"></p><script src="https://example.org/x.js"></script>')
    assert part("links").dead_links(tmp_path) == [
        "a.html: b.html#there",
        "a.html: c.html",
        "b.html: https://example.org/x.js (loaded from a network)",
    ]


def test_pages_are_adapted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staging = part("staging")
    site = staging.Site()
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    monkeypatch.setattr(staging, "ROOT", tmp_path)
    (tmp_path / "LICENSE").write_text("free\n")
    site.pages = {page: "page", tmp_path / "README.md": "readme"}
    page.write_text(
        "[r](../README.md#x) [l](../LICENSE) [w](https://example.org)\n\n```python torch mlx\nx\n```\n\n"
        "```python a/b.py\ny\n```\n\n<picture>\n"
        '<source media="(prefers-color-scheme: dark)" srcset="d.svg">\n<img alt="A" src="l.svg">\n</picture>\n'
    )
    text = site.adapted(page)
    assert text.startswith("[r](/readme.md#x) [l](source:LICENSE) [w](https://example.org)\n\n```python\nx\n```\n")
    assert "```{code-block} python\n:caption: a/b.py\n\ny\n```" in text
    assert "```{image} l.svg\n:alt: A\n:class: only-light picture\n```" in text
    assert "```{image} d.svg\n:alt: A\n:class: only-dark picture\n```" in text
    assert site.sources == {"LICENSE"}
    page.write_text("[none](none.py)")
    with pytest.raises(ValueError, match=r"a link must lead to a file, got none\.py"):
        site.adapted(page)


def test_examples_show_tensors_of_the_engine(backend: Backend) -> None:
    found = part("examples").run(backend.name, ["operations/math/add", "operations/random/random_normal"])
    assert [source for source, _ in found["operations/math/add"]] == ["add([1, 2], 3)\n"]
    assert found["operations/math/add"][0][1] == f"{ember_ml.ops.asarray([4, 5])!r}\n"
    assert found["operations/random/random_normal"][0][0] == "random_normal(2, key=7)\n"
    ember_ml.set_backend(backend.name)


def test_pictures_are_current() -> None:
    command = [sys.executable, str(ROOT / "docs" / "pictures"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"run: python docs/pictures\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as HTML: that of ``--site``, else a part of it."""
    given = request.config.getoption("--site")
    return Path(given).resolve() if given else build_part(request, tmp_path_factory.mktemp("site"))


def build_part(request: pytest.FixtureRequest, folder: Path) -> Path:
    for name in ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_copybutton", "sphinx_design"):
        pytest.importorskip(name, reason=f"{name} is not installed; it is in the extra docs")
    if not set(backends.OWN) <= set(ENGINES):
        pytest.skip("the pages of operations name every engine")
    site = copy.copy(request.getfixturevalue("site"))
    staging = part("staging")
    staging.keep_only(site, BUILT)
    staging.write(site, folder / "source")
    command = [sys.executable, "-m", "sphinx", *part("__main__").SPHINX, "-d", str(folder / "doctrees")]
    command += [str(folder / "source"), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def test_the_built_pages_have_no_dead_links(built: Path) -> None:
    assert part("links").dead_links(built) == []
    assert (built / "operations" / CATEGORY / "softmax.html").exists()
    assert (built / "_source" / "ember_ml" / "ops" / f"{CATEGORY}.py.html").exists()


def test_fences_with_further_words_are_highlighted(built: Path) -> None:
    text = (built / "index.html").read_text(encoding="utf-8")
    assert re.search(
        r'<div class="highlight-python[^"]*"><div class="highlight"><pre><span></span><span class="kn">', text
    )


@pytest.fixture(scope="module")
def browser(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium without a window."""
    with chromium(tmp_path_factory.mktemp("profile"), (1400, 900)) as driver:
        yield driver


def search(browser: Any, built: Path, words: str) -> list[Any]:
    """Results of a search, from the field in the header of the front page."""
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get((built / "index.html").as_uri())
    browser.find_element("css selector", "button.search-button-field").click()
    field = browser.find_element("css selector", "#pst-search-dialog input[type=search]")
    WebDriverWait(browser, 10).until(lambda _: field.is_displayed())
    field.send_keys(words, Keys.ENTER)
    WebDriverWait(browser, 20).until(
        lambda driver: "found" in driver.find_element("css selector", "#search-results .search-summary").text
    )
    found = browser.find_elements("css selector", "ul.search > li")
    said = browser.find_element("css selector", "#search-results .search-summary").text
    assert all(result.is_displayed() for result in found)
    assert ("found one page" if len(found) == 1 else f"found {len(found)} pages") in said
    assert [log for log in browser.get_log("browser") if log["level"] == "SEVERE"] == []
    return list(found)


def page_of(result: Any, built: Path) -> str:
    link = str(result.find_element("css selector", "a").get_attribute("href"))
    return re.sub(r"[?#].*", "", link).removeprefix(f"{built.as_uri()}/")


@pytest.mark.parametrize(
    ("words", "page", "said"),
    [
        ("softmax", "operations/activations/softmax.html", "along axis: positive, with sum 1."),
        ("EMB203", "rules/EMB203.html", "A tensor whose truth value Python tests."),
        ("set_default_dtype", "operations/dtypes/set_default_dtype.html", "Set the dtype of Python floats"),
        ("set default dtype float64", "semantics.html", "An operation behaves the same on every engine."),
        ("early stopping", "training.html", "Training"),
        ("multiple GPUs", "distributed.html", "Distributed training"),
    ],
)
def test_the_search_finds_from_disk(browser: Any, built: Path, words: str, page: str, said: str) -> None:
    first = search(browser, built, words)[0]
    assert page_of(first, built) == page
    assert said in first.text


def test_the_search_shows_guides_before_generated_pages(browser: Any, built: Path) -> None:
    pages = [page_of(result, built) for result in search(browser, built, "default dtype")]
    assert "semantics.html" in pages[:3]
    assert "operations/dtypes/set_default_dtype.html" in pages[:10]
    # Every page of an operation has a table of dtypes, which is no reason to show it.
    assert f"operations/{CATEGORY}/relu.html" not in pages


def test_no_two_pages_have_one_title(site: Any) -> None:
    title = part("staging")._title
    titles = [title(text) for name, text in site.texts.items() if "/" not in name]
    assert sorted(titles) == sorted(set(titles))


def test_engine_tabs_switch_together(browser: Any, built: Path) -> None:
    def shown() -> str:
        (panel,) = [p for p in browser.find_elements("css selector", ".sd-tab-content") if p.is_displayed()]
        return str(panel.text)

    browser.get((built / "operations" / CATEGORY / "softmax.html").as_uri())
    assert "dtype=float32" in shown()
    torch = next(label for label in browser.find_elements("css selector", ".sd-tab-label") if label.text == "PyTorch")
    torch.click()
    assert "tensor([[" in shown()
    browser.get((built / "operations" / CATEGORY / "relu.html").as_uri())
    chosen = browser.find_element("css selector", ".sd-tab-set input:checked + label")
    assert chosen.text == "PyTorch"


@pytest.mark.parametrize("width", [1400, 400])
def test_no_page_is_wider_than_the_window(browser: Any, built: Path, width: int) -> None:
    browser.set_window_size(width, 900)
    for page in ("index", f"operations/{CATEGORY}/softmax", "semantics", "rules/EMB203", "layers"):
        browser.get((built / f"{page}.html").as_uri())
        wide = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert wide[0] <= wide[1], (page, wide)


def test_pictures_scroll_in_a_narrow_window(browser: Any, built: Path) -> None:
    browser.set_window_size(400, 900)
    browser.get((built / "performance.html").as_uri())
    widths = browser.execute_script(
        "const block = document.querySelector('.pictures'); return [block.clientWidth, block.scrollWidth]"
    )
    assert widths[0] < 400 < 700 < widths[1]


def test_code_has_a_button_that_copies_and_output_has_none(browser: Any, built: Path) -> None:
    browser.set_window_size(1400, 900)
    browser.get((built / "index.html").as_uri())
    button = browser.find_element("css selector", ".highlight-python button.copybtn")
    assert button.value_of_css_property("opacity") == "1"
    button.click()
    assert "success" in button.get_attribute("class")
    assert browser.find_elements("css selector", ".highlight-text button.copybtn") == []


@pytest.mark.parametrize("page", ["performance", "quickstart", f"operations/{CATEGORY}/softmax"])
def test_links_have_one_color(browser: Any, built: Path, page: str) -> None:
    browser.get((built / f"{page}.html").as_uri())
    for theme in ("light", "dark"):
        colors = browser.execute_script(
            "document.documentElement.dataset.theme = arguments[0];"
            "const links = document.querySelectorAll('.bd-article a.reference, .bd-article a.reference code');"
            "return [...new Set([...links].map((link) => getComputedStyle(link).color))]",
            theme,
        )
        assert len(colors) == 1


def test_the_header_shows_the_version(browser: Any, built: Path) -> None:
    browser.get((built / "quickstart.html").as_uri())
    assert browser.find_element("css selector", ".bd-header a.version").text == ember_ml.__version__
