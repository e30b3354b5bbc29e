"""Every kernel test runs on every backend."""

import pytest

from geval_py.kernel import native, reference

KERNELS = {"python": reference, "native": native}


@pytest.fixture(params=KERNELS, scope="session")
def kernel(request):
    """A kernel backend; a missing native build is an error, not a skip."""
    return KERNELS[request.param]
