"""Tables of pandas, for Python: it is no part of a participant's install, and it is imported here alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from geval_py.errors import MissingPackageError
from geval_py.version import installs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pandas as pd


def make_frame(data: Mapping[str, Any] | Sequence[Mapping[str, Any]], index: list[int] | None = None) -> pd.DataFrame:
    """Make a pandas table of columns by their names, or of rows; raises MissingPackageError without pandas."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        message = f"a table in Python needs {error.name}, of the extra pandas: {installs('pandas')}"
        raise MissingPackageError(message=message, package=error.name or "pandas") from error
    return pd.DataFrame(data, index=index)
