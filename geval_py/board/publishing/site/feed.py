"""An Atom feed (RFC 4287) of the latest submissions; ids are `tag:` URIs (RFC 4151), the same wherever it stands."""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

from geval_py.board.publishing.site.rendering import render
from geval_py.board.publishing.site.view import SiteView
from geval_py.board.settings import Settings

MOST_ENTRIES = 50
NOBODY = "geval.invalid"  # the authority of a board that has no address
_BEGINNING = "1970-01-01T00:00:00Z"


def feed(view: SiteView) -> str:
    """Write the feed; scores are not in it, so that it never tells more than the pages."""
    address = view.settings.url if urlsplit(view.settings.url).hostname else ""
    return render(
        "feed.xml",
        view=view,
        base=f"{address.rstrip('/')}/" if address else "",
        identity=identity(view.settings),
        tag_of=lambda code, arrived: f"tag:{authority(view.settings)},{arrived:%Y-%m-%d}:{code}",
        submissions=[one for one in view.submissions if not one.withdrawn][:MOST_ENTRIES],
        beginning=_BEGINNING,
    )


def authority(settings: Settings) -> str:
    """Give the host that the ids of a board's feed are made with."""
    return (urlsplit(settings.url).hostname or NOBODY).lower()


def identity(settings: Settings) -> str:
    """Give the id of the feed; without an address it is told from other boards' by its title."""
    path = urlsplit(settings.url).path.strip("/")
    name = path if urlsplit(settings.url).hostname else hashlib.sha256(settings.title.encode()).hexdigest()[:16]
    return f"tag:{authority(settings)},2026:board/{name}"
