"""What guards every request: headers of each answer, bodies that are refused, where a change may come from; forms."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (  # in the pages themselves, where frame-ancestors has no meaning
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
POLICY = f"{PAGE_POLICY}; frame-ancestors 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FORM_BYTES = 65_536  # of a form without a file
HTTPS_ALONE = "max-age=31536000"


class Guards:
    """An application whose answers have the headers above; it gets no body that is compressed."""

    def __init__(self, app: ASGIApp, *, is_secure: bool) -> None:
        self._app = app
        self._headers = HEADERS | ({"Strict-Transport-Security": HTTPS_ALONE} if is_secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        names = {name for name, _ in scope["headers"]}
        if {b"content-length", b"transfer-encoding"} <= names:  # RFC 9112, section 6.1: perhaps smuggled past a proxy
            refusal = PlainTextResponse("Send a length or chunks.\n", 400, headers={"Connection": "close"})
            await refusal(scope, receive, guarded)
            return
        coding = [value for name, value in scope["headers"] if name == b"content-encoding"]
        if any(value.strip().lower() not in (b"", b"identity") for value in coding):
            refusal = PlainTextResponse("Send the body without a Content-Encoding.\n", 415)
            await refusal(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)


def bearer_token(request: Request) -> str | None:
    """Return the token of a program; None without one. Basic credentials, which a proxy may want, are none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def read_form(request: Request) -> dict[str, str]:
    """Read a small form; raises HTTPException for another body."""
    if int(request.headers.get("content-length") or FORM_BYTES + 1) > FORM_BYTES:
        raise HTTPException(413, "The form is too long.")
    async with request.form(max_files=0, max_fields=20, max_part_size=FORM_BYTES) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}
