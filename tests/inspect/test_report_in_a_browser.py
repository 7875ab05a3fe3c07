"""The report's page in a real browser: it sorts, filters and finds layers in its picture, wide and narrow."""

from __future__ import annotations

import dataclasses
import re
import shutil

import pytest

from ovlpt import data
from ovlpt.inspect.report import report
from ovlpt.inspect.report.page import GLOSSARY, WHOLE, to_html
from ovlpt.inspect.report.several import Network, comparison_page, index_page
from tests.inspect.test_report import chain, pooled

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox",  # as root there is none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = 400, 1400


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("no Chromium on the PATH: the page is not opened")
    sync_api = pytest.importorskip("playwright.sync_api", reason="without playwright the page is not opened")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def found(core):
    return report(chain(pooled), core=core, native_only=True, seconds=0.1)


@pytest.fixture(scope="module")
def pages(found, core, tmp_path_factory):
    """A small network with a float island, the bundled one, one that is shown in neighbourhoods, two compared, an index."""
    last = found.layers[-1]
    longer = [
        dataclasses.replace(last, index=len(found.layers) + at, name=f"more{at}", inputs=(len(found.layers) + at - 1,))
        for at in range(WHOLE)
    ]
    reports = {
        "small": found,
        "bundled": report(data.digits(), core=core, seconds=0.1),
        "large": dataclasses.replace(found, layers=[*found.layers, *longer]),
    }
    folder = tmp_path_factory.mktemp("pages")
    made = {name: to_html(each) for name, each in reports.items()}
    made["two"] = comparison_page(reports["small"], reports["bundled"])
    made["index"] = index_page([Network.of(each, f"{name}.html") for name, each in reports.items()])
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(params=WIDTHS)
def opened(request, browser, pages):
    """Opens a page; at the end there was no message on the console, and the page asked for nothing but itself."""
    said, asked = [], []
    page = browser.new_page(viewport={"width": request.param, "height": 900}, reduced_motion="reduce")
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    def visit(name: str):
        page.goto((pages / f"{name}.html").as_uri())
        return page

    yield visit
    page.close()
    assert said == []
    assert all(url.startswith(("file:", "data:")) for url in asked)


def numbers(page, name: str) -> list[float]:
    return page.eval_on_selector_all("#layers tbody tr", f"rows => rows.map(row => Number(row.dataset.{name}))")


@pytest.mark.parametrize("column, name", [("time", "time"), ("work", "work")])
def test_the_table_sorts(opened, column, name):
    page = opened("bundled")
    in_order = numbers(page, "index")
    header = page.locator(f"#layers th:has([data-column={column}])")
    header.get_by_role("button").click()
    assert numbers(page, name) == sorted(numbers(page, name), reverse=True)
    assert len(set(numbers(page, name))) > 2
    assert header.get_attribute("aria-sort") == "descending"
    header.get_by_role("button").click()
    assert numbers(page, name) == sorted(numbers(page, name))
    page.locator("#layers [data-column=order]").click()
    assert numbers(page, "index") == in_order == sorted(in_order)


def test_the_table_filters(opened, found):
    page = opened("small")
    shown = page.locator("#layers tbody tr:visible")
    assert shown.count() == len(found.executed)
    page.locator("#filter").fill("opset14 pool")
    pools = [layer for layer in found.executed if layer.reason and "opset14" in layer.reason.text]
    assert shown.count() == len(pools) == 2
    assert page.locator("#shown").inner_text() == f"2 of {len(found.executed)} layers"
    page.locator(".kinds [data-kind=int8]").click()
    assert shown.count() == 0
    page.locator("#filter").fill("")
    assert shown.count() == sum(layer.kind == "int8" for layer in found.executed)


# Whether an element lies within the picture and within the window.
IN_VIEW = """selector => {
    const inside = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
        && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    const box = document.querySelector(selector).getBoundingClientRect();
    const frame = document.querySelector(".picture").getBoundingClientRect();
    return inside(box, frame) && inside(box, {left: 0, top: 0, right: innerWidth, bottom: innerHeight});
}"""


@pytest.mark.parametrize("name", ["small", "bundled", "large"])
def test_a_click_on_a_layer_shows_it_in_the_picture(opened, name):
    page = opened(name)
    rows = page.locator("#layers tbody tr")
    for at in (0, rows.count() // 2, rows.count() - 1):
        index = rows.nth(at).get_attribute("data-index")
        rows.nth(at).locator(".layer button").click()
        assert page.locator(".box.chosen").get_attribute("id") == f"box{index}"
        page.wait_for_function(IN_VIEW, arg=f"#box{index}", timeout=10_000)
        title = page.locator(f"#box{index} title").text_content()
        assert page.locator("#detail h3").inner_text() == title


def test_a_click_in_the_picture_chooses_the_row(opened, found):
    page = opened("small")
    (pool,) = (layer for layer in found.executed if layer.type == "Pooling")
    page.locator(f"#box{pool.index}").click()
    assert page.locator("tr.chosen").get_attribute("id") == f"row{pool.index}"
    assert "opset14" in page.locator("#detail").inner_text()


def test_a_large_graph_is_shown_in_neighbourhoods(opened, found):
    page = opened("large")
    total = len(found.layers) + WHOLE
    assert 0 < page.locator(".box").count() < 40
    page.locator("#whole").check()
    assert page.locator(".box").count() == total


def test_nothing_is_wider_than_the_window(opened):
    for name in ("small", "bundled", "large", "two", "index"):
        page = opened(name)
        for summary in page.locator("summary").all():
            summary.click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", ["two", "index"])
def test_names_of_several_networks_are_read_on_a_narrow_window(opened, name):
    """A column of three letters each is not read, and what lies beside the window neither."""
    page = opened(name)
    assert not page.eval_on_selector_all(
        ".wide", "all => all.filter(each => each.scrollWidth > each.clientWidth).length"
    )
    for cell in page.locator(".stacks tbody tr > :first-child").all():
        assert cell.bounding_box()["width"] > 120


def test_every_figure_of_a_layer_is_seen(opened):
    work = opened("bundled").locator("td.work:not(:empty)")
    assert work.count() > 2
    assert all(each.is_visible() for each in work.all())


def test_long_names_break_at_their_separators(opened):
    page = opened("bundled")
    page.locator("#layers tbody tr").first.locator("button").click()
    parts = page.eval_on_selector_all(
        "#detail dd", "all => all.map(each => [...each.childNodes].map(part => part.textContent))"
    )
    assert [part for each in parts for part in each if "/" in part[:-1] or "QuantizeDecomposition" in part] == []
    assert any("".join(each).startswith("FakeQuantizeDecompositionTransformation") for each in parts)


def width(page) -> float:
    return page.evaluate("document.querySelector('.picture > svg').getBoundingClientRect().width")


def test_the_picture_zooms_and_moves(opened):
    page = opened("large")
    page.locator("#whole").check()
    natural, picture = width(page), page.locator(".picture")
    page.locator("[data-zoom='1.25']").click()
    assert width(page) == pytest.approx(1.25 * natural, rel=0.01)
    picture.focus()
    page.keyboard.press("-")
    assert width(page) == pytest.approx(natural, rel=0.01)
    page.keyboard.press("0")
    frame = picture.bounding_box()
    assert width(page) <= frame["width"]
    page.locator("[data-zoom='1:1']").click()
    chosen, top = page.locator("tr.chosen").get_attribute("id"), picture.evaluate("each => each.scrollTop = 200")
    picture.scroll_into_view_if_needed()
    frame = picture.bounding_box()
    page.mouse.move(frame["x"] + 60, frame["y"] + 60)
    page.mouse.down()
    page.mouse.move(frame["x"] + 60, frame["y"] + 160, steps=4)
    page.mouse.up()
    assert picture.evaluate("each => each.scrollTop") == top - 100
    assert page.locator("tr.chosen").get_attribute("id") == chosen  # moving is no click


def test_the_schemes_differ_and_paper_is_white(opened):
    page = opened("small")
    ground = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) != light
    page.emulate_media(color_scheme="dark", media="print")
    assert page.evaluate(ground) == light == "rgb(255, 255, 255)"


def test_a_point_of_the_scatter_chooses_its_layer(opened):
    page = opened("bundled")
    points = page.locator(".scatter circle")
    assert points.count() > 2
    index = points.nth(1).get_attribute("data-layer")
    points.nth(1).dispatch_event("click")
    assert page.locator("tr.chosen").get_attribute("id") == f"row{index}"


# What holds the focus: the first word that names it.
FOCUSED = """() => {
    const each = document.activeElement;
    return each.id || each.dataset.zoom || each.dataset.column || each.className || each.textContent.trim();
}"""
OUTLINED = """() => {
    const style = getComputedStyle(document.activeElement), box = document.activeElement.getBoundingClientRect();
    return style.outlineStyle !== "none" && box.left >= 0 && box.bottom > 0;
}"""


def test_the_keyboard_goes_where_the_eye_goes(opened):
    """From the verdict to the picture before the rows, which may be thousands and can be jumped over."""
    page, passed = opened("small"), []
    while len(passed) < 60 and passed[-1:] != ["Words"]:
        page.keyboard.press("Tab")
        passed.append(page.evaluate(FOCUSED))
        assert page.evaluate(OUTLINED), passed[-1]
        if page.evaluate("document.activeElement.closest('section:last-of-type summary') !== null"):
            passed.append("Words")
    places = [passed.index(each) for each in ("skip", "filter", "detail", "fit", "order", "time")]
    assert places == sorted(places)
    assert passed[-1] == "Words"
    page.get_by_text("Skip the layers").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "after"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.closest('#layers tbody') !== null")


# Names that a screen reader says, of what is not seen as a word: [all elements that need one, those without].
NAMELESS = """() => {
    const said = each => each.getAttribute("aria-label") || (each.labels?.[0] || each).textContent.trim();
    const all = [...document.querySelectorAll("button, a, summary, th, input, svg[role=img], [role=region], .bar[role=img]")];
    return [all.length, all.filter(each => !said(each)).map(each => each.outerHTML.slice(0, 80))];
}"""


@pytest.mark.parametrize("name", ["small", "bundled", "large"])
def test_a_screen_reader_has_a_name_for_everything(opened, name):
    page = opened(name)
    number, nameless = page.evaluate(NAMELESS)
    assert number > 20
    assert nameless == []
    assert page.locator("th:not([scope])").count() == 0
    scrolls = "each => each.some(one => one.scrollWidth > one.clientWidth && one.tabIndex < 0)"
    assert not page.eval_on_selector_all(".wide, #detail, .picture", scrolls)
    assert page.locator("#layers [aria-current]").count() == page.locator("tr.chosen").count()
    kind = page.locator("#layers tbody tr").first.get_attribute("data-kind")
    assert page.locator("#layers tbody tr").first.get_by_role("button", name=kind).count() == 1


# WCAG's contrast of each text with what lies below it; those of less than 4.5.
CONTRAST = """() => {
    const numbers = colour => { const c = colour.match(/[\\d.]+/g).map(Number); return c.length < 4 ? [...c, 1] : c; };
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
    const below = each => {
        for (let at = each; at; at = at.parentElement) {
            const colour = numbers(getComputedStyle(at).backgroundColor);
            if (colour[3] > 0) return colour;
        }
        return [255, 255, 255, 1];
    };
    const bad = [];
    for (const each of document.querySelectorAll("body *:not(svg *):not(script)")) {
        const own = [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
        const found = contrast(numbers(getComputedStyle(each).color), below(each));
        if (own && each.getClientRects().length && found < 4.5) bad.push([each.outerHTML.slice(0, 80), found]);
    }
    return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(opened, scheme):
    page = opened("small")
    page.emulate_media(color_scheme=scheme)
    for row in page.locator("#layers tbody tr").all():
        row.locator("button").click()
        assert page.evaluate(CONTRAST) == []
    kinds = "['--int8', '--float', '--border', '--movement', '--other']"
    root = "getComputedStyle(document.documentElement)"
    ground, *shapes = page.evaluate(f"['--ground', ...{kinds}].map(name => {root}.getPropertyValue(name))")
    for shape in shapes:
        assert contrast(shape, ground) >= 3, shape


def contrast(*colours: str) -> float:
    """WCAG's, of two colours as #rrggbb or #rgb."""
    lights = []
    for digits in (colour.strip().lstrip("#") for colour in colours):
        parts = [int(part * (2 // len(part)), 16) / 255 for part in re.findall("." * (len(digits) // 3), digits)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_paper_has_everything(opened):
    """Nothing that is folded on a screen, no word that means a click, and a head on each sheet."""
    page = opened("small")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator(".words dt:visible").count() == len(GLOSSARY)
    for hidden in ("#filter", ".zoom", ".picture", "#detail", ".screen"):
        assert page.locator(hidden).first.is_visible() is False, hidden
    display = "getComputedStyle(document.querySelector('.table thead')).display"
    assert page.evaluate(display) == "table-header-group"
    bars = "all => all.map(each => [each.getBoundingClientRect().bottom, each.closest('tr').getBoundingClientRect().bottom])"
    assert all(bar <= row for bar, row in page.eval_on_selector_all(".time i", bars))
    assert "In order of execution." in page.locator("#layers").inner_text()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_the_keyboard_is_enough(opened):
    page = opened("small")
    page.locator("#layers tbody tr").nth(1).locator("button").focus()
    page.keyboard.press("Enter")
    assert page.locator("tr.chosen").get_attribute("data-index") == page.locator("#layers tbody tr").nth(
        1
    ).get_attribute("data-index")
    assert page.locator("abbr[title]").count() > 5
