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


FAKE_TORCH = """
import importlib.util, sys
sys.path.insert(0, sys.argv[1])
try:
    import torch
    print("imported", torch.__file__.startswith(sys.argv[1]))
except ImportError as error:
    print(error.name, "another PyTorch" in str(error) and sys.argv[1] in str(error), "torch" in sys.modules)
print(importlib.util.find_spec("torch") is not None)
"""


@pytest.mark.parametrize("learn, expected", [(True, "torch True False"), (False, "imported True")])
def test_no_other_pytorch_is_imported_after_a_learned_placer(tmp_path, learn, expected):
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text("loaded = True\n")
    (tmp_path / "torch" / "lib" / "libtorch_cpu.so").write_text("another")
    code = PLACE + ("emplace.place(problem, 'post', evaluations=200)\n" if learn else "\n") + FAKE_TORCH
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert done.stdout.splitlines() == [expected, "True"], done.stderr


@pytest.mark.parametrize("between", ["", "sys.meta_path.insert(0, AsksAll())"])
def test_torch_is_found_once_emplace_is_imported_again(tmp_path, between):
    """Also beside a finder that asks all finders, as this one does."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("loaded = True\n")
    code = f"""
import sys
class AsksAll:
    def find_spec(self, name, path=None, target=None):
        others = [finder for finder in sys.meta_path if finder is not self] if name == "torch" else []
        return next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
sys.path.insert(0, sys.argv[1])
import emplace
for name in [name for name in sys.modules if name.split(".")[0] == "emplace"]:
    del sys.modules[name]
import emplace
{between}
import torch
print(torch.loaded, [type(finder).__name__ for finder in sys.meta_path].count("Watch"))
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert done.stdout.strip() == "True 1", done.stderr


def test_the_pytorch_that_it_was_built_with_may_come_later():
    pytest.importorskip("torch")
    done = python(PLACE + "emplace.place(problem, 'post', evaluations=200); import torch; print(torch.ones(2).sum())")
    assert done.stdout.strip() == "tensor(2.)", done.stderr
