"""Get GEval's exact scores, fast, and see what drives them.

from geval_py import evaluate
print(evaluate("my-challenge", "dev-0").score)

The public names and their modules are listed in ``__init__.pyi``. A name is imported when it is first used, so a
program waits only for what it needs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
