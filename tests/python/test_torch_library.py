"""What needs libtorch: the learned placers, and what happens when another libtorch is there."""

import json
import shutil
import subprocess
import sys
import time

import emplace
import pytest
from emplace import _child

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


@pytest.fixture(scope="module")
def beside_another(tmp_path_factory):
    """Runs code in a process that has loaded another libtorch."""
    if not shutil.which("gcc"):
        pytest.skip("no compiler")
    other = tmp_path_factory.mktemp("other") / "libtorch_cpu.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-Wl,-soname,libtorch_cpu.so", "-o", other], check=True)
    start = f"import ctypes; ctypes.CDLL({str(other)!r});" + PLACE + "\n"
    end = "\nprint({line.split()[-1] for line in open('/proc/self/maps') if '/libtorch_cpu' in line} == "
    end += f"{{{str(other)!r}}})"

    def run(code):
        done = python(start + code + end)
        lines = done.stdout.splitlines()
        assert lines and lines[-1] == "True", done.stderr
        return lines[:-1]

    try:
        (refused,) = run("try:\n    emplace.train(['zoo:alexnet'], ['2xp100'], seconds=0.1)\n"
                         "except emplace.Error as error:\n    print(error.kind, error)")
    except AssertionError:
        pytest.skip("this build's libtorch has no version in its name by which it is told from others")
    assert refused.startswith("unsupported") and "another PyTorch" in refused and str(other) in refused
    return run


def test_beside_another_pytorch_learned_placers_run_in_a_child_process(beside_another):
    lines = beside_another(
        "answer = emplace.place(problem, 'post', evaluations=200, seed=3)\n"
        "print(answer.placer); print(answer.placement.tolist())\n"
        "answers = emplace.compare(problem, ['expert', 'post'], evaluations=200)\n"
        "print([a.placer for a in answers], any('another PyTorch' in note for note in answers[0].notes))"
    )
    assert lines[0] == "post in a child process" and lines[2] == "['expert'] True"
    here = emplace.place(emplace.compile("zoo:gnmt-2:batch=8,sequence=4", "2xp100"), "post", evaluations=200, seed=3)
    assert lines[1] == str(here.placement.tolist())


def test_a_child_has_its_time_once_it_runs(beside_another):
    assert beside_another("print(emplace.place(problem, 'post', seconds=0.3).fits)") == ["True"]


def test_a_child_is_told_all_that_a_search_depends_on(beside_another, tmp_path):
    """Pins, fused chains, costs of one's own, slow devices, and which devices may be used."""
    (tmp_path / "slow.yaml").write_text(
        emplace.read_cluster("2xp100").to_yaml().replace("kind: p100, ", "kind: p100, slowdown: 1.25, ", 1))
    lines = beside_another(
        f"problem = emplace.compile('zoo:gnmt-2:batch=8,sequence=4', {str(tmp_path / 'slow.yaml')!r}, fuse=True,\n"
        "    pin=['encoder*=gpu1'], in_place='all', costs=lambda op, device, kind: 7.123 if op.phase == 'update' else None)\n"
        "answer = emplace.place(problem, 'post(samples=8)', evaluations=100, starts=[emplace.place(problem, 'single')])\n"
        "print(answer.placer, answer.fits)\n"
        "from emplace import _child\n"
        "class Session: starts, seconds, max_evaluations = [], None, 100\n"
        "Session.problem = problem\n"
        "given = dict.fromkeys(_child._PASSED_ON) | {'learning': emplace.LearningSettings(), 'starts': []}\n"
        "request = _child._request(Session, given, problem.in_place)\n"
        "import json\n"
        "again = emplace.compile(emplace.Graph.from_json(json.dumps(request['graph'])),\n"
        "    emplace.Cluster.from_yaml(request['cluster']), in_place=request['in_place'])\n"
        "print((again.durations == problem.durations).all(), (again.groups == problem.groups).all())\n"
        "print(emplace.assess(again, answer.placement).time == emplace.assess(problem, answer.placement).time)\n"
        "print('slowdown' in problem.cluster.to_yaml(), problem.in_place)"
    )
    assert lines == ["post samples=8 in a child process True", "True True", "True", "True all"]


def test_a_childs_errors_are_errors_here(beside_another):
    lines = beside_another(
        "try:\n    emplace.place(problem, 'post', evaluations=50, learning=emplace.LearningSettings(device='cuda:99'))\n"
        "except emplace.Error as error:\n    print(error.kind, error)"
    )
    assert lines and "cuda:99" in lines[0] and "GPU" in lines[0] and "is for placers that learn" not in lines[0]


def test_a_child_learns_as_it_was_told(beside_another, tmp_path):
    checkpoint, curves = tmp_path / "kept", tmp_path / "curves"
    lines = beside_another(
        "def learn(evaluations, **settings):\n"
        "    settings = emplace.LearningSettings(**settings)\n"
        "    print(emplace.place(problem, 'post', evaluations=evaluations, learning=settings).placer)\n"
        f"learn(60, device='cpu', curves={str(curves)!r})\n"
        f"learn(60, checkpoint={str(checkpoint)!r})\n"
        f"learn(120, checkpoint={str(checkpoint)!r}, resume=True)\n"
        f"try:\n    learn(60, checkpoint={str(checkpoint)!r})\nexcept emplace.Error as error:\n    print(error)"
    )
    assert lines[:3] == 3 * ["post in a child process"] and "exists; resume it" in lines[3]
    assert checkpoint.stat().st_size > 0 and (curves / "curves.csv").exists()


def test_sets_of_devices_share_a_budget(beside_another):
    lines = beside_another(
        "from emplace import _child\n"
        "request, budgets = _child._request, []\n"
        "def noted(session, given, in_place):\n"
        "    asked = request(session, given, in_place)\n"
        "    budgets.append([asked['arguments'][name] for name in ('seconds', 'evaluations')])\n"
        "    return asked\n"
        "_child._request = noted\n"
        "problem = emplace.compile('zoo:gnmt-2:batch=8,sequence=4', '1xp100+1xv100+1xk80')\n"
        "emplace.place(problem, 'post', evaluations=90, most_devices=2)\n"
        "print(budgets)\n"
        "budgets.clear()\n"
        "answer = emplace.place(problem, 'post', seconds=0.3, most_devices=2)\n"
        "print(answer.fits, len(budgets), budgets[0][0] <= 0.1)\n"
    )
    assert lines[0] == str(3 * [[None, 30]])
    assert lines[1] == "True 1 True"  # a process takes longer to start than all of them have


class Session:
    problem = emplace.compile("zoo:gnmt-2:batch=8,sequence=4", "2xp100", pin=["*=gpu1"])
    num_groups, max_evaluations, starts, spent = max(problem.groups) + 1, None, [], False
    seconds = 0.2


def test_the_time_of_a_set_of_devices_begins_with_it(monkeypatch):
    left = []

    def run(session, until, request, answer, errors):
        left.append(until - time.monotonic())
        time.sleep(session.seconds)
        json.dump({"placement": [1] * len(session.problem.graph)}, answer)
        return 0, False

    monkeypatch.setattr(_child, "_run", run)
    given = dict.fromkeys(_child._PASSED_ON) | {"learning": emplace.LearningSettings(), "starts": []}
    place = _child._function(given, "all")
    for _ in range(3):
        assert (place(Session) == 1).all()
    assert len(left) == 3 and 0 < min(left) and max(left) <= Session.seconds


def test_what_is_spent_starts_no_child(monkeypatch):
    monkeypatch.setattr(_child, "_run", None)
    monkeypatch.setattr(Session, "spent", True)
    place = _child._function({}, "all")
    assert (place(Session) == 1).all()  # all that the pin leaves
    monkeypatch.setattr(Session, "starts", ["a start", "another"])
    assert place(Session) == "a start"


def test_ctrl_c_ends_a_child_with_its_best(beside_another):
    lines = beside_another(
        "import os, signal, threading, time\n"
        "threading.Timer(10, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "start = time.monotonic()\n"
        "answer = emplace.place(problem, 'post', seconds=300)\n"
        "print(answer.interrupted, answer.fits, time.monotonic() - start < 60)"
    )
    assert lines == ["True True True"]


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
