"""An error with its whole message: what the tests of refusals have in common."""

from contextlib import contextmanager

import pytest

from geval_py import UsageError


@contextmanager
def refused(message, kind=UsageError):
    """Expect an error of this kind, whose message is this one to the letter."""
    with pytest.raises(kind) as caught:
        yield
    assert str(caught.value) == message
