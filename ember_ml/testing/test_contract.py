"""The checks of ``contract.py``, for pytest."""

import pytest

from ember_ml.testing.contract import *

pytestmark = pytest.mark.contract
