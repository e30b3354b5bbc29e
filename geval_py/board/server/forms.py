"""Small forms of pages."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request

FORM_BYTES = 65_536  # of a form without a file


async def read_form(request: Request) -> dict[str, str]:
    """Read a small form; raises HTTPException for another body."""
    if int(request.headers.get("content-length") or FORM_BYTES + 1) > FORM_BYTES:
        raise HTTPException(413, "The form is too long.")
    async with request.form(max_files=0, max_fields=20, max_part_size=FORM_BYTES) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}
