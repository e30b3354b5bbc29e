"""What axe-core finds on a page of a browser, and steps that several pages are tested by."""

from pathlib import Path

AXE = Path(__file__).parents[1] / "build" / "axe-core" / "axe.min.js"
RUN = """
axe.run({resultTypes: ["violations"]}).then(
    (found) => found.violations.map((each) => [each.id, each.impact, each.nodes[0].html])
)
"""


def axe_findings(page):
    """Each rule that a page breaks, how grave that is, and the first element."""
    assert AXE.is_file(), "axe-core is missing: scripts/axe fetches it"
    page.wait_for_load_state()  # a page that a form led to may still lack its style
    page.evaluate("Promise.allSettled(document.getAnimations().map((each) => each.finished))")  # colours that move
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return page.evaluate(RUN)


def check_policy(page):
    """Check that the page's policy refuses a style and a script, and says so."""
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p id=x style=\"color: red\">x</p>')")
    assert page.evaluate("getComputedStyle(document.getElementById('x')).color") != "rgb(255, 0, 0)"
    page.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
    )
    assert page.evaluate("window.ran") is None
    assert len(page.said) == 2


def tab_to(page, name):
    """Press Tab until the button of a header has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        button = page.evaluate("document.activeElement.tagName === 'BUTTON' ? document.activeElement.innerText : ''")
        if button.startswith(name):
            return
    raise AssertionError(name)


def sorted_headers(page):
    return page.evaluate("[...document.querySelectorAll('[aria-sort]')].map(h => [h.innerText, h.ariaSort])")
