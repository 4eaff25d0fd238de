import os
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
sys.path.insert(0, os.path.dirname(__file__))
