"""The site in a browser: quiet, alone, usable by keyboard, without findings of axe-core; wide, narrow, light, dark."""

from dataclasses import replace

import pytest
import site_views
from axe import axe_findings, check_policy, sorted_headers, tab_to
from playwright.sync_api import expect

from geval_py.board.ranking.views import Figures
from geval_py.board.site.files import write_site

PAGES = (
    "index.html", "progress.test-A.html", "parameters.test-A.html", "compare.test-A.html", "submissions.html",
    "challenge.html", "submit.html",
)  # fmt: skip
SCREENS = [(390, "dark"), *(pytest.param(*one, marks=pytest.mark.long) for one in [(1280, "light"), (1280, "dark")])]
# Tests drive the browser: all of ours that runs is what makes the pages
pytestmark = [pytest.mark.no_cover, pytest.mark.slow]


def written(folder, view):
    write_site(str(folder / "public"), site_views.made(view).items())
    return folder / "public"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return written(tmp_path_factory.mktemp("site"), site_views.view())


@pytest.fixture
def open_page(open_address, site):
    """Return a function that opens a page of the site by a file's address, as ``open_address`` does."""
    return lambda name, **more: open_address(f"{site.as_uri()}/{name}", **more)


def one_submission(site, status):
    for path in sorted((site / "submissions").iterdir()):
        if f'class="state {status}"' in path.read_text(encoding="utf-8"):
            return f"submissions/{path.name}"
    raise AssertionError(status)


def one_submitter(site):
    path = max((site / "submitters").iterdir(), key=lambda path: path.stat().st_size)
    return f"submitters/{path.name}"


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_is_quiet_fits_and_keeps_the_rules_of_accessibility(open_page, site, width, scheme):
    page = open_page("index.html", width=width, scheme=scheme, bypass_csp=True)
    pages = [*PAGES, one_submission(site, "scored"), one_submission(site, "rejected"), one_submitter(site)]
    for name in pages:
        page.goto(f"{site.as_uri()}/{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(site.as_uri())] == []
    for name in pages:
        page.goto(f"{site.as_uri()}/{name}")
        grave = [(name, html) for name, impact, html in axe_findings(page) if impact in ("serious", "critical")]
        assert grave == [], name


def with_more_columns():
    """A board with two metrics more, phases, a ladder, long names and affiliations."""
    view = site_views.view(changes={"phases": site_views.PHASES})
    metrics = ("PerplexityHashed", "Accuracy", "LogLossHashed", "LikelihoodHashed")

    def more(entry, number):
        figures = {"PerplexityHashed": entry.output.shown, **dict.fromkeys(metrics[1:], Figures(value=0.009512))}
        affiliation = "Universität Stuttgart, Institut für Maschinelle Sprachverarbeitung"
        submitter = f"{entry.submitter} of the late evening shift"
        named = replace(entry.submission, submitter=submitter, affiliation=affiliation)
        return replace(entry, submission=named, output=replace(entry.output, figures=figures), held=number % 2 > 0)

    standings = {
        key: replace(of, others=metrics[1:], entries=tuple(more(one, n) for n, one in enumerate(of.entries)))
        for key, of in view.standings.items()
    }
    return replace(view, standings=standings, metrics=metrics)


def test_no_column_is_cut_off_with_two_more_metrics(open_address, tmp_path):
    place = written(tmp_path, with_more_columns())
    page = open_address(f"{place.as_uri()}/index.html", width=1280)
    widths = "[...document.querySelectorAll('.scroll')].map(box => [box.scrollWidth, box.clientWidth])"
    for name in ("index.html", "compare.test-A.html", "submissions.html", one_submission(place, "scored")):
        page.goto(f"{place.as_uri()}/{name}")
        boxes = page.evaluate(widths)
        assert boxes, name
        assert [box for box in boxes if box[0] > box[1]] == [], name


@pytest.fixture(scope="module")
def site_with_phases(tmp_path_factory):
    return written(tmp_path_factory.mktemp("phases"), site_views.view(changes={"phases": site_views.PHASES}))


@pytest.mark.parametrize(("now", "zone", "text"), [
    ("2027-01-28T22:00:00Z", "Asia/Tokyo", "3 days left; 1 Feb, 08:00 your time"),
    ("2027-01-30T22:00:00Z", "UTC", "25 hours left"), ("2027-01-31T22:58:59Z", "UTC", "1 minute left"),
    ("2027-01-31T23:00:01Z", "UTC", "over"),
])  # fmt: skip
def test_the_time_left_is_told_by_a_script(browser, site_with_phases, now, zone, text):
    page = browser.new_page(timezone_id=zone, locale="de-DE")
    page.clock.set_fixed_time(now)
    for name in ("index.html", "submit.html"):
        page.goto(f"{site_with_phases.as_uri()}/{name}")
        assert f"31 Jan 2027, 23:00 UTC = 31 Jan, 11:00 AoE ({text})" in page.inner_text("main")
    page.close()


def test_the_policy_holds_in_the_browser(open_page):
    check_policy(open_page("index.html"))


def column(page, name):
    return page.locator(f"table.board tbody tr:not([hidden]) .{name}").all_inner_texts()


def test_sorting_by_keyboard(open_page):
    page = open_page("index.html")
    first = column(page, "score")
    assert sorted_headers(page) == [["Place", "ascending"]]
    tab_to(page, "PerplexityHashed")
    page.keyboard.press("Enter")
    assert sorted_headers(page) == [["PerplexityHashed", "ascending"]]
    page.keyboard.press("Space")
    assert sorted_headers(page) == [["PerplexityHashed", "descending"]]
    assert column(page, "score") == sorted(first, key=float, reverse=True)
    tab_to(page, "Submitter")
    page.keyboard.press("Enter")
    names = page.locator("table.board tbody .who a").all_inner_texts()
    teams = [name for name in names if name.startswith("Team")]
    assert teams == sorted(teams)
    assert sorted_headers(page) == [["Submitter", "ascending"]]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert sorted_headers(page) == [["Place", "ascending"]]
    assert column(page, "score") == first
    assert page.said == []


def test_what_has_no_value_stays_last(open_page):
    page = open_page("index.html")
    for _ in ("ascending", "descending"):
        page.get_by_role("button", name="Range").press("Enter")
        *others, last = column(page, "range")
        assert (last, "–" in others) == ("–", False)


def test_filtering_by_keyboard(open_page):
    page = open_page("index.html")
    rows = page.locator("table.board tbody tr:not([hidden])")
    total = rows.count()
    page.get_by_label("Tag").focus()
    page.keyboard.type("neural")  # a native list takes the option that begins so
    page.keyboard.press("Enter")
    neural = rows.count()
    assert 0 < neural < total
    assert page.get_by_role("status").inner_text() == f"{neural} of {total} entries shown"
    assert all("neural" in text for text in column(page, "who"))
    page.get_by_label("Parameter").select_option(index=1)
    assert rows.count() <= neural
    page.get_by_role("button", name="Show all").press("Enter")
    expect(page.locator("table.board tbody tr[hidden]")).to_have_count(0)  # waits, without a script in the page
    page.get_by_label("Search").focus()
    page.keyboard.type("TEAM 007")
    assert rows.count() == 1
    assert page.said == []


def test_two_submissions_side_by_side(open_page):
    page = open_page("compare.test-A.html")
    place = page.locator("#side-by-side")
    assert "They are not significantly different." in place.inner_text()
    page.get_by_label("Second").select_option(index=10)
    assert "They are significantly different." in place.inner_text()
    first = place.locator("thead th").all_inner_texts()
    codes = page.evaluate("location.hash").removeprefix("#").split(",")
    page.goto(page.url.partition("#")[0] + f"#{codes[1]},{codes[0]}")
    page.reload()
    assert place.locator("thead th").all_inner_texts() == first[::-1]
    assert page.said == []


def test_a_submissions_page_leads_to_the_comparison(open_page, site):
    path = next(p for p in sorted((site / "submissions").iterdir()) if "the first, " in p.read_text(encoding="utf-8"))
    page = open_page(f"submissions/{path.name}")
    page.get_by_role("link", name="the first, ").first.click()
    page.wait_for_load_state()
    chosen = page.get_by_label("First").evaluate("select => select.selectedIndex")
    assert chosen > 0
    assert path.stem in page.evaluate(f"document.querySelectorAll('table.compared tbody tr')[{chosen}].dataset.code")


def test_submissions_of_different_phases_were_not_compared(browser, tmp_path):
    view = site_views.of_two_phases()
    main, late = (view.standings["test-A", phase].entries for phase in ("main", "post-deadline"))
    page, address = browser.new_page(), f"{written(tmp_path, view).as_uri()}/compare.test-A.html"
    page.goto(f"{address}#{main[0].code},{late[0].code}")
    assert "They were not compared line by line, because they are not in one leaderboard." in page.inner_text("main")
    page.goto(f"{address}#{main[0].code},{main[1].code}")
    page.reload()
    assert "significantly different." in page.inner_text("#side-by-side")
    page.close()


def test_without_scripts_or_in_print_all_figures_are_there_and_nothing_to_press(open_page):
    page = open_page("compare.test-A.html", java_script_enabled=False)
    assert page.locator("table.compared tbody tr").count() > 10
    assert page.locator("form").is_hidden()
    page = open_page("index.html")
    page.emulate_media(media="print")
    assert page.locator("form.filter").is_hidden()
    assert page.get_by_role("navigation", name="Pages").first.is_hidden()
    assert page.locator("table.board tbody tr").first.is_visible()
