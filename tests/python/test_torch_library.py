"""What needs libtorch: the learned placers, and what happens when another libtorch is there."""

import shutil
import subprocess
import sys

import emplace
import pytest

learned = [info.key for info in emplace.list_placers() if info.family == "learned"]
pytestmark = pytest.mark.skipif(not learned, reason="built without libtorch")

PLACE = "import emplace; problem = emplace.compile('zoo:gnmt-2:batch=8,sequence=4', '2xp100');"


def python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_learned_placers_work():
    done = python(PLACE + "print(emplace.place(problem, 'post', evaluations=200).evaluations > 0)")
    assert done.stdout.strip() == "True", done.stderr


def test_beside_the_pytorch_that_it_was_built_with():
    pytest.importorskip("torch")
    code = (
        "import torch;" + PLACE + "emplace.place(problem, 'post', evaluations=200);"
        "print(torch.nn.Linear(3, 3)(torch.ones(2, 3)).shape,"
        "len({line.split()[-1] for line in open('/proc/self/maps') if '/libtorch_cpu' in line}))"
    )
    done = python(code)
    assert done.stdout.strip() == "torch.Size([2, 3]) 1", done.stderr


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler")
def test_no_second_libtorch_is_loaded(tmp_path):
    other = tmp_path / "libtorch_cpu.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-Wl,-soname,libtorch_cpu.so", "-o", other], check=True)
    code = (
        f"import ctypes; ctypes.CDLL({str(other)!r});" + PLACE + "\n"
        "try:\n    emplace.place(problem, 'post', evaluations=200)\n"
        "except emplace.Error as error:\n    print(error.kind, error)\n"
        "print(sorted({line.split()[-1] for line in open('/proc/self/maps') if '/libtorch_cpu' in line}))\n"
        "answers = emplace.compare(problem, ['expert', 'post'], evaluations=200)\n"
        "print([a.placer for a in answers], any('another PyTorch' in note for note in answers[0].notes))"
    )
    done = python(code)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("unsupported") and lines[1] == f"['{other}']", done.stderr
    if "could not be loaded" in lines[0]:
        pytest.skip("this build's libtorch has no version in its name by which it is told from others")
    assert "another PyTorch" in lines[0] and str(other) in lines[0]
    assert lines[2] == "['expert'] True"
