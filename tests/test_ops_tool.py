"""The commands ``ember-ml ops list`` and ``matrix``, and the page in a real browser."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import chromium

import ember_ml
from ember_ml import backend as backends
from ember_ml import cli
from ember_ml.dispatch import REGISTRY
from ember_ml.tools import LOCK, UsageError, commands, measuring, operations
from ember_ml.tools.page import page

ENGINES = ember_ml.get_available_backends()


@pytest.fixture
def ember(capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs ``ember-ml ops ...`` in this process: its status, output and complaints."""

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = cli.main(["ops", *arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    yield run
    ember_ml.set_backend("numpy")


ACTIONS = ["list", "matrix", "measure", "check", "plan", "migrate"]


@pytest.mark.parametrize("action", ["", *ACTIONS])
def test_help_helps(ember: Any, action: str) -> None:
    status, out, err = ember(*([action] if action else []), "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"usage: ember-ml ops {action}".rstrip())
    lines = out.partition("examples:\n")[2].splitlines()
    for line in lines:
        cli._parser().parse_args(line.split("  ")[1].split()[1:])
    if action in ("", "matrix", "measure", "check", "plan", "migrate"):
        assert lines


def test_no_action_is_help(ember: Any) -> None:
    status, out, _ = ember()
    assert status == 0
    for action in ACTIONS:
        assert action in out


def test_help_loads_no_engine() -> None:
    code = (
        "import sys; from ember_ml.cli import main\n"
        "try: main(['ops', 'measure', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'torch', 'mlx', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_list_names_every_operation(ember: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = ember("list")
    assert status == 0
    assert f"{len(REGISTRY)} operations" in out
    assert "matmul(x1, x2, /)" in out
    for name in REGISTRY:
        assert name in out


def test_list_of_a_category_for_machines(ember: Any) -> None:
    status, out, _ = ember("list", "--category", "bitwise", "--json")
    assert status == 0
    facts = json.loads(out)
    assert {o["name"] for o in facts["operations"]} == {n for n, o in REGISTRY.items() if o.category == "bitwise"}
    first = facts["operations"][0]
    assert set(first["providers"]) == set(ENGINES)
    assert first["signature"].startswith("(")
    assert first["dtype_rule"] == REGISTRY[first["name"]].rule.name


def test_matrix_is_what_the_backends_say(ember: Any) -> None:
    _, out, _ = ember("matrix", "--format", "json")
    facts = json.loads(out)
    assert len(facts["operations"]) == len(REGISTRY)
    for entry in facts["operations"]:
        for engine, provider in entry["providers"].items():
            assert provider == backends.load(engine).provider(REGISTRY[entry["name"]])
    for engine in ENGINES:
        assert sum(facts["counts"][engine].values()) == len(REGISTRY)
    _, short, _ = ember("matrix", "--json")
    assert short == out


def test_matrix_tables(ember: Any) -> None:
    _, out, _ = ember("matrix", "--format", "csv")
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["operation", "category", "dtype_rule", *ENGINES]
    assert len(rows) == len(REGISTRY) + 1
    _, out, _ = ember("matrix", "--format", "md", "--backend", "numpy")
    assert "| `matmul` | promoted | own |\n" in out
    _, out, _ = ember("matrix")
    assert "matmul" in out
    assert "numpy: " in out


def test_missing_operations_are_listed_per_engine(ember: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = backends.load("numpy")
    provider = numpy.provider
    monkeypatch.setattr(numpy, "provider", lambda o: "missing" if o.name in ("add", "exp") else provider(o))
    _, out, _ = ember("matrix", "--backend", "numpy")
    assert "missing on numpy: " in out
    assert set(out.rpartition("missing on numpy: ")[2].strip().split(", ")) == {"add", "exp"}
    _, out, _ = ember("matrix", "--backend", "numpy", "--json")
    assert sorted(json.loads(out)["missing"]["numpy"]) == ["add", "exp"]


def test_a_file_that_cannot_be_written_is_named_before_the_work(
    ember: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "measure", None)
    (tmp_path / "file").touch()
    for out in (tmp_path, tmp_path / "file" / "matrix.json"):
        for arguments in (["measure", "--ops", "add"], ["matrix", "--format", "csv"]):
            status, _, err = ember(*arguments, "--out", str(out))
            assert status == 1
            assert err.endswith((f"'{out}'\n", f"'{tmp_path / 'file'}'\n")), err
            assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_matrix_goes_to_a_file(ember: Any, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "matrix.html"
    status, out, _ = ember("matrix", "--format", "html", "--measured", str(LOCK), "--out", str(path))
    assert (status, out) == (0, "")
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list", "--category", "sums"], "got 'sums'"),
        (["matrix", "--backend", "abacus"], "must be a known one, got 'abacus'"),
        (["matrix", "--format", "pdf"], "invalid choice"),
        (["matrix", "--measured", "x.json"], "--measured is for --format html"),
        (["matrix", "--out", "x.txt"], "--out needs a --format"),
        (["matrix", "--format", "html", "--measured", "nowhere.json"], "nowhere.json must be a file"),
        (["measure", "--ops", "frobnicate"], "must be one that is known, got 'frobnicate'"),
        (["measure", "--ops", "addd"], "got 'addd'; did you mean 'add'?"),
        (["measure", "--jobs", "0"], "must be an integer > 0, got '0'"),
        (["measure", "--limit", "0"], "must be a number > 0"),
        (["measure", "--limit", "nan"], "must be a number > 0"),
        (["check", str(LOCK), "--matrix", str(LOCK), "--ops", "frobnicate"], "known, got 'frobnicate'"),
        (["list", "--categ", "math"], "unrecognized arguments"),
        (["measure", "--module", "no_such_module"], "no_such_module"),
        (["check"], "required"),
        (["migrate"], "required"),
        (["frobnicate"], "invalid choice"),
    ],
)  # fmt: skip
def test_misuse_is_one_line(ember: Any, arguments: list[str], says: str) -> None:
    status, out, err = ember(*arguments)
    assert status == 2
    assert says in err
    assert err.count("\n") == 1
    assert out == ""


class Parsed(HTMLParser):
    """A page as a browser reads it: its tags with their attributes, and the text of its data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.data = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and ("id", "data") in self.tags[-1][1]:
            self.data += data


def test_the_page_holds_what_it_shows_and_loads_nothing() -> None:
    text = page(operations.entries(), measuring.read(LOCK))
    assert "http" not in text.replace("http://www.w3.org", "")
    assert len(json.loads(Parsed(text).data)["operations"]) == len(REGISTRY)


@pytest.mark.parametrize(
    "planted",
    [
        "a < b",
        "</script><b>",
        "</SCRIPT >",
        "<!--<script>",
        "-->",
        "&lt;&amp;&quot;",
        "\"'`",
        "]]>",
        "\\u003c",
        "\u2028",
    ],
)
def test_the_page_holds_any_text_as_it_is(planted: str) -> None:
    """Names, notes and reasons are data: no character of theirs becomes a tag, an entity or the end of the script."""
    plain = operations.entries("math", ["numpy"])[0]
    result: dict[str, Any] = {
        "status": planted,
        "cases": 1,
        "dtypes": {planted: planted},
        "keywords": {planted: planted},
    }
    result["differences"] = [{"input": planted, "what": planted, "reference": planted, "engine": planted}]
    named = dict.fromkeys(("name", "category", "signature", "dtype_rule", "summary"), planted)
    measured = {planted: {"engines": {"numpy": result}}}
    parsed = Parsed(page([replace(plain, **named)], {"versions": {"numpy": planted}, "operations": measured}))
    assert "<" not in parsed.data
    assert parsed.tags == Parsed(page([plain])).tags
    shown = json.loads(parsed.data)
    assert shown["versions"] == {"numpy": planted}
    (operation,) = shown["operations"]
    assert {key: operation[key] for key in named} == named
    assert operation["measured"] == {"numpy": result}


def test_the_page_makes_no_markup_of_text() -> None:
    """Elements are made one by one and text is put into them, which a browser does not parse."""
    template = Path(operations.__file__).with_name("page.html").read_text(encoding="utf-8")
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\bsrcdoc\b|\beval\b", template) == []


def test_categories_are_those_of_the_registry() -> None:
    assert set(operations.categories()) == {operation.category for operation in REGISTRY.values()}
    with pytest.raises(UsageError, match="category must be one of activations, bitwise, collectives, compar"):
        operations.entries("sums")
    assert commands.add is not None


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium without a window, on the page of the lock."""
    path = tmp_path_factory.mktemp("page") / "matrix.html"
    path.write_text(page(operations.entries(), measuring.read(LOCK)), encoding="utf-8")
    with chromium(tmp_path_factory.mktemp("profile"), (1280, 900)) as driver:
        driver.get(path.as_uri())
        yield driver


@pytest.fixture
def shown(browser: Any) -> Any:
    """The page as it opens, and a function for the operations that are visible on it."""
    browser.get(browser.current_url.partition("#")[0])
    script = """
        return [...document.querySelectorAll("tr.row")].filter(row => row.offsetParent !== null)
            .map(row => row.querySelector(".mono").textContent);
    """

    def names() -> list[str]:
        found: list[str] = browser.execute_script(script)
        return found

    return names


def choose(browser: Any, which: str, value: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element(By.ID, which)).select_by_value(value)


def test_the_page_opens_with_everything(browser: Any, shown: Any) -> None:
    assert shown() == list(REGISTRY)
    assert browser.find_element("id", "count").text == f"{len(REGISTRY)} of {len(REGISTRY)} operations"
    assert [log for log in browser.get_log("browser") if log["level"] == "SEVERE"] == []
    cards = browser.find_elements("css selector", ".engine h2")
    assert [card.text.split()[0] for card in cards] == ENGINES


def test_typing_in_the_search_box_finds(browser: Any, shown: Any) -> None:
    browser.find_element("id", "search").send_keys("matmul")
    found = shown()
    assert "matmul" in found
    assert len(found) < 20
    texts = {e.name: f"{e.name} {e.category} {e.signature} {e.summary}".lower() for e in operations.entries()}
    assert found == [name for name in REGISTRY if "matmul" in texts[name]]
    browser.find_element("id", "search").send_keys(" zzz")
    assert shown() == []
    assert browser.find_element("id", "nothing").is_displayed()


def test_filters_narrow_and_combine(browser: Any, shown: Any) -> None:
    choose(browser, "category", "stats")
    stats = [name for name, operation in REGISTRY.items() if operation.category == "stats"]
    assert shown() == stats
    choose(browser, "engine", "numpy")
    choose(browser, "status", "own")
    own = [name for name in stats if backends.load("numpy").provider(REGISTRY[name]) == "own"]
    assert shown() == own
    hidden = browser.find_elements("css selector", "thead th")
    assert [head.text.lower() for head in hidden if head.is_displayed()] == [
        "operation",
        "category",
        "dtype rule",
        "numpy",
    ]
    browser.find_element("id", "search").send_keys("mean")
    assert set(shown()) <= set(own)
    browser.find_element("id", "clear").click()
    assert shown() == list(REGISTRY)


@pytest.mark.parametrize("status", ["same", "differs", "fails"])
def test_measured_statuses_can_be_filtered(browser: Any, shown: Any, status: str) -> None:
    lock = measuring.read(LOCK)["operations"]
    engine = [name for name in ENGINES if name in lock["add"]["engines"]][-1]
    choose(browser, "engine", engine)
    values = [option.get_attribute("value") for option in browser.find_elements("css selector", "#status option")]
    expected = [name for name in REGISTRY if lock[name]["engines"][engine]["status"] == status]
    if status in values:
        choose(browser, "status", status)
        assert shown() == expected
    else:
        assert expected == []


def test_the_counts_of_an_engine_lead_to_its_operations(browser: Any, shown: Any) -> None:
    button = browser.find_elements("css selector", ".engine:last-child .legend button")[0]
    count = int(button.find_element("css selector", "b").text)
    button.click()
    assert len(shown()) == count


def test_keys_move_open_and_clear(browser: Any, shown: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(*keys: str) -> None:
        ActionChains(browser).send_keys(*keys).perform()

    press("/", "logsumexp", Keys.ARROW_DOWN, Keys.ENTER)
    detail = browser.find_element("css selector", "tr.detail")
    assert detail.is_displayed()
    assert "float32" in detail.text
    assert browser.switch_to.active_element.get_attribute("aria-expanded") == "true"
    press(Keys.ENTER)
    assert browser.find_elements("css selector", "tr.detail") == []
    press(Keys.ESCAPE)
    assert shown() == list(REGISTRY)
    assert browser.switch_to.active_element.get_attribute("id") == "search"


def test_the_address_remembers_the_filters(browser: Any, shown: Any) -> None:
    choose(browser, "category", "fft")
    address = browser.current_url
    assert address.endswith("#category=fft")
    browser.get("about:blank")
    browser.get(address)
    assert set(shown()) == {name for name, operation in REGISTRY.items() if operation.category == "fft"}
    browser.get("about:blank")
    browser.get(address.replace("=fft", "=alchemy"))
    assert shown() == list(REGISTRY)
    assert browser.find_element("css selector", "#category option:checked").text == "every category"


def test_light_and_dark(browser: Any, shown: Any) -> None:
    def paper() -> str:
        colour: str = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return colour

    before = paper()
    browser.find_element("id", "theme").click()
    assert paper() != before
    browser.find_element("id", "theme").click()
    assert paper() == before


def test_operations_that_were_not_measured_are_found(browser: Any, shown: Any, tmp_path: Path) -> None:
    whole, here = measuring.read(LOCK), browser.current_url
    few = {**whole, "operations": {"add": whole["operations"]["add"]}}
    path = tmp_path / "few.html"
    path.write_text(page(operations.entries(), few), encoding="utf-8")
    try:
        browser.get(path.as_uri())
        buttons = browser.find_elements("css selector", ".engine:first-child .legend button")
        assert [button.text for button in buttons] == ["same 1", f"unmeasured {len(REGISTRY) - 1}"]
        buttons[1].click()
        assert len(shown()) == len(REGISTRY) - 1
        buttons[0].click()
        assert shown() == ["add"]
    finally:
        browser.get(here)
