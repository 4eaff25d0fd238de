"""tools/capture_torch.py, a client of this package."""
import os
import subprocess
import sys

import emplace

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x).square().mean()


def make():
    return Net(), (torch.randn(4, 8),), "small"
"""


def run(folder, *arguments):
    return subprocess.run([sys.executable, os.path.join(ROOT, "tools", "capture_torch.py"),
                           *arguments], cwd=folder, capture_output=True, text=True)


def test_a_step_is_captured_with_times(tmp_path):
    (tmp_path / "nets.py").write_text(NET)
    done = run(tmp_path, "nets:make", "-o", "small.json.gz", "--device", "cpu", "--key", "mine")
    assert done.returncode == 0, done.stderr
    assert "small.json.gz: " in done.stdout and "a step" in done.stdout
    graph = emplace.read_model(str(tmp_path / "small.json.gz")).graph
    assert graph.name == "small" and graph.training
    assert '"mine"' in graph.to_json()


def test_one_that_fails_does_not_stop_the_others(tmp_path):
    (tmp_path / "nets.py").write_text(NET)
    done = run(tmp_path, "nets:missing", "nets:make", "-o", "out", "--device", "cpu")
    assert done.returncode == 2
    assert "nets:missing: " in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "out" / "small.json.gz").exists()


def test_what_is_no_model_is_explained(tmp_path):
    done = run(tmp_path, "nothing", "--device", "cpu")
    assert done.returncode != 0 and "neither module:function nor one of" in done.stderr
