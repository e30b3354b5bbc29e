"""Tables of pandas, for Python: it is no part of a participant's install, and it is imported here alone."""

from __future__ import annotations

from geval_py.errors import MissingPackageError
from geval_py.version import installs

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas as pd


def frame_class() -> type[pd.DataFrame]:
    """Return pandas' class for tables; raises MissingPackageError, so it is called before the work for a table."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        message = f"a table in Python needs {error.name}, of the extra pandas: {installs('pandas')}"
        raise MissingPackageError(message=message, package=error.name or "pandas") from error
    return pd.DataFrame
