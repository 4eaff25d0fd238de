import importlib.util
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
if importlib.util.find_spec("torch") is None or importlib.util.find_spec("torchvision") is None:
    collect_ignore_glob = ["test_*.py"]  # pytest then says that there are none
