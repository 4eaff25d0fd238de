"""The examples run, and do what they say."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def test_reinforce_learns():
    pytest.importorskip("torch")
    command = [sys.executable, EXAMPLES / "reinforce.py", "--model", "zoo:gnmt-2:batch=8,sequence=4", "--cluster", "2xp100",
               "--seconds", "5"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("expert") and "times as fast as the expert" in done.stdout
