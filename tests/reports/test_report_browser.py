"""A report in a browser: quiet, alone, usable by keyboard, without findings of axe-core; wide, narrow, light, dark."""

import pytest
from axe import axe_findings, check_policy, sorted_headers, tab_to

SCREENS = {"wide": 1280, "narrow": 390}
WIDE, NARROW = ("wide", "light"), ("narrow", "dark")
# Tests drive the browser: all of ours that runs is what makes the page
pytestmark = [pytest.mark.no_cover, pytest.mark.slow]


@pytest.fixture(scope="module")
def place(tmp_path_factory, gazette):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(gazette, encoding="utf-8")
    return path


@pytest.fixture
def open_report(open_address, place):
    """Return a function that opens a report by its file's address, as ``open_address`` does."""
    return lambda *, at=place, **more: open_address(at.as_uri(), **more)


@pytest.mark.parametrize(("screen", "scheme"), [pytest.param(*WIDE, marks=pytest.mark.long), NARROW])
def test_it_is_quiet_alone_and_fits(open_report, place, screen, scheme):
    page = open_report(width=SCREENS[screen], scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen]
    assert page.said == []
    assert set(page.asked) <= {place.as_uri(), "data:,"}


@pytest.mark.parametrize(("screen", "scheme"), [WIDE, pytest.param(*NARROW, marks=pytest.mark.long)])
def test_axe_finds_nothing(open_report, screen, scheme):
    assert findings(open_report(width=SCREENS[screen], scheme=scheme, bypass_csp=True)) == []


@pytest.mark.long
@pytest.mark.parametrize(("screen", "scheme"), [WIDE, NARROW])
def test_a_report_on_translations(open_report, page_of, screen, scheme, tmp_path):
    place = tmp_path / "report.html"
    place.write_text(page_of("BLEU", "middling", "good", "bad"), encoding="utf-8")
    page = open_report(width=SCREENS[screen], scheme=scheme, at=place)
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen]
    assert sorted_headers(page) == [["BLEU", "ascending"]]
    scores = column(page, 2)
    tab_to(page, "BLEU")
    page.keyboard.press("Enter")
    assert sorted_headers(page) == [["BLEU", "descending"]]
    assert [float(score) for score in column(page, 2)] == sorted(map(float, scores), reverse=True)
    assert page.said == []
    assert findings(open_report(width=SCREENS[screen], scheme=scheme, at=place, bypass_csp=True)) == []


def findings(page):
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.evaluate("document.querySelectorAll('#lines tbody tr:nth-child(n + 20)').forEach((each) => each.remove())")
    return axe_findings(page)


def test_the_policy_holds(open_report):
    check_policy(open_report())


def test_the_switch_sets_the_colours(open_report):
    page = open_report(scheme="light")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("radio", name="dark").check()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)" != before
    text = page.locator("#length svg.chart text").first  # of a chart, which follows
    soft = page.evaluate("getComputedStyle(document.querySelector('.eyebrow')).color")
    assert text.evaluate("text => getComputedStyle(text).fill") == soft


def column(page, number):
    return page.locator(f"#lines tbody tr:not([hidden]) > :nth-child({number})").all_inner_texts()


def test_sorting_by_keyboard(open_report):
    page = open_report()
    first = column(page, 1)
    assert sorted_headers(page) == [["perplexity", "descending"]]
    tab_to(page, "line")
    page.keyboard.press("Enter")
    assert sorted_headers(page) == [["line", "ascending"]]
    assert column(page, 1) == sorted(first, key=int)
    page.keyboard.press("Space")
    assert sorted_headers(page) == [["line", "descending"]]
    tab_to(page, "perplexity")
    page.keyboard.press("Enter")
    assert column(page, 1) == first
    tab_to(page, "its share")
    page.keyboard.press("Enter")
    shares = column(page, 5)
    listed = [float(share.removesuffix(" %")) for share in shares if share != "–"]
    assert listed == sorted(listed, reverse=True)
    assert shares[-1] == "–"  # what has none stays last
    assert page.said == []


def test_searching_by_keyboard(open_report):
    page = open_report()
    page.get_by_label("Search", exact=True).focus()
    page.keyboard.type("TELEPHONE")
    shown = page.locator("#lines tbody tr:not([hidden])").all_inner_texts()
    assert shown
    assert all("telephone" in text.lower() for text in shown)
    assert page.get_by_role("status").inner_text() == f"{len(shown)} of 212 lines"
    page.keyboard.press("Enter")  # which sends nothing anywhere
    assert page.said == []


def visible_rows(page):
    return page.locator("#lines tbody tr:visible").count()


def test_twenty_lines_are_shown_until_more_are_asked_for(open_report):
    page = open_report()
    assert visible_rows(page) == 20
    page.get_by_label("Search", exact=True).fill("the")  # lines that are not shown are searched, too
    lines = len(column(page, 1))
    assert 20 == visible_rows(page) < lines < 212
    page.get_by_label("Search", exact=True).fill("")
    tab_to(page, "line")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator("#lines tbody tr:visible th").all_inner_texts() == [str(line) for line in range(212, 192, -1)]
    tab_to(page, "Show more: all 212 lines")
    page.keyboard.press("Enter")
    assert visible_rows(page) == 212
    page.keyboard.press("Enter")  # the button is still focused
    assert visible_rows(page) == 20
    page.get_by_label("Search", exact=True).fill("telephone")
    assert visible_rows(page) == len(column(page, 1)) < 20
    assert page.locator("#more").is_hidden()
    assert page.said == []


def test_without_scripts_all_is_there(open_report):
    page = open_report(java_script_enabled=False)
    assert visible_rows(page) == 212
    assert page.locator("svg.chart").count() >= 8
    assert page.get_by_role("search").count() == 0
    assert page.get_by_role("button").count() == 0
    page.get_by_text("Numbers and method").first.click()
    assert page.locator("#quality table").is_visible()


@pytest.mark.long
def test_text_in_charts_grows_on_a_phone(open_report):
    sizes = {
        screen: open_report(width=width).evaluate(
            "() => { const t = document.querySelector('#length svg text'); const s = t.ownerSVGElement;"
            " return parseFloat(getComputedStyle(t).fontSize) * s.getBoundingClientRect().width / s.viewBox.baseVal.width }"
        )
        for screen, width in SCREENS.items()
    }
    assert all(size >= 10.5 for size in sizes.values()), sizes


@pytest.mark.long
def test_it_prints(open_report):
    page = open_report(scheme="dark")
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF-")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.get_by_role("search").count() == 0
    assert visible_rows(page) == 212
