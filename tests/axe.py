"""What axe-core finds on a page of a browser."""

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
    page.evaluate("Promise.allSettled(document.getAnimations().map((each) => each.finished))")  # colours that move
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return page.evaluate(RUN)
