"""bench/eager.py, with a program in emplace's place that says what a step took."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

EAGER = Path(__file__).parents[3] / "bench/eager.py"
MODEL = "gnmt-2:batch=2,sequence=2,hidden=8,vocabulary=16"


def table_of(folder, program, *models):
    stand_in = folder / "emplace"
    stand_in.write_text("#!/bin/sh\n" + program)
    stand_in.chmod(0o755)
    cluster = folder / "one.yaml"
    cluster.write_text("devices: [{name: cpu0, runs_on: cores 0}]\n")
    done = subprocess.run([sys.executable, EAGER, "--emplace", stand_in, "--cluster", cluster,
                           "--rounds", "1", "--steps", "2", "--processor-time", *models],
                          capture_output=True, text=True)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    return done, rows


STEP = "echo '" + json.dumps({"step_ms": 1}) + "'"


def test_kinds_that_this_pytorch_lacks_leave_the_others(tmp_path):
    done, rows = table_of(tmp_path, STEP, MODEL)
    assert done.returncode == 0, done.stderr
    (model, numbers, eager, compiled, executed, ratio, *_), = rows
    assert (model, numbers, compiled, executed) == (MODEL, "float32", "-", "1.00")
    assert float(eager) == pytest.approx(float(ratio)) and float(eager) > 0


@pytest.mark.parametrize("program, model, says", [
    ("echo no such thing >&2; exit 2", MODEL, "no such thing"),
    (STEP, "vgg-16:batch=2", "there is no PyTorch model for 'vgg-16'"),
])
def test_a_row_without_one_side_is_no_success(tmp_path, program, model, says):
    done, rows = table_of(tmp_path, program, model)
    assert done.returncode == 1
    assert says in done.stderr
    assert "-" in rows[0]
