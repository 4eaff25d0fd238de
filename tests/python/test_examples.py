"""The examples run, and do what they say."""

import pathlib
import re
import subprocess
import sys

import emplace
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


MODEL = "zoo:gnmt-2:batch=8,sequence=4"


def test_reinforce_beats_the_expert():
    """Of so many evaluations, however fast the machine is."""
    pytest.importorskip("torch")
    command = [sys.executable, EXAMPLES / "reinforce.py", "--model", MODEL, "--cluster", "2xp100", "--seconds", "300",
               "--evaluations", "1600"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("expert")
    ratio = re.search(r"^([0-9.]+) times as fast as the expert$", done.stdout, re.M)[1]
    assert float(ratio) >= 1


def test_reinforce_learns(monkeypatch):
    """What it samples at the end is much faster than at first; without learning it is not."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(EXAMPLES)
    import reinforce

    class Watched:
        def __init__(self, session):
            self.session, self.means = session, []

        def __getattr__(self, name):
            return getattr(self.session, name)

        def evaluate(self, rows):
            times, overflow = self.session.evaluate(rows)
            self.means.append(times.mean())
            return times, overflow

    def change(rate):
        watched = []

        def placer(session):
            watched.append(Watched(session))
            return reinforce.reinforce(watched[0], rate=rate)

        emplace.place(emplace.compile(MODEL, "2xp100"), placer, evaluations=960)
        means = watched[0].means
        assert len(means) == 30
        return sum(means[-5:]) / sum(means[:5])

    assert change(rate=0.03) < 0.75 < change(rate=0) < 1.25
