"""The environment as one of gymnasium's: by a stand-in, which makes gymnasium's checks, and the real one where it is."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

STAND_INS = pathlib.Path(__file__).parent / "stand_ins"

EPISODE = """
import sys
import emplace, gymnasium
sys.modules.get("emplace.gymnasium") is None or sys.exit("was imported already")
emplace.environment.register_with_gymnasium()
environment = gymnasium.make("emplace/Placement-v0", model="zoo:gnmt-2:batch=8,sequence=4", cluster="2xp100")
observation, info = environment.reset(seed=3)
assert environment.observation_space.contains(observation), observation
assert environment.unwrapped.placing.num_groups > 10
terminated = False
while not terminated:
    action = int(observation["allowed"].nonzero()[0][-1])
    assert environment.action_space.contains(action)
    observation, reward, terminated, truncated, info = environment.step(action)
    assert environment.observation_space.contains(observation), observation
    assert isinstance(reward, float) and truncated is False
assert info["fits"] and reward == -info["time"] / 1e9
problem = environment.unwrapped.placing.problem
same = gymnasium.make("emplace/Placement-v0", problem=problem).unwrapped.placing
assert same.evaluate(info["devices"][None])[0][0] == info["time"]
for wrong in ({}, {"problem": problem, "model": "zoo:alexnet"}):
    try:
        gymnasium.make("emplace/Placement-v0", **wrong)
    except emplace.Error as error:
        assert "expected a problem, or a model and a cluster" in str(error)
    else:
        sys.exit("was not refused")
print("done")
"""


def python(code, *path):
    before = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}\n"
    done = subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_episode():
    assert python(EPISODE, STAND_INS) == "done"


def test_importing_the_module_registers_it():
    code = "import emplace.gymnasium, gymnasium.envs.registration as r; print(list(r.registry))"
    assert python(code, STAND_INS) == "['emplace/Placement-v0']"


def test_emplace_itself_does_not_import_it():
    assert python("import sys, emplace; print('gymnasium' in sys.modules)", STAND_INS) == "False"


@pytest.mark.skipif(importlib.util.find_spec("gymnasium") is None, reason="gymnasium is not installed")
def test_an_episode_of_the_real_one():
    assert python(EPISODE) == "done"


def test_the_package_announces_it():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((pathlib.Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
    module, _, function = project["project"]["entry-points"]["gymnasium.envs"]["emplace"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
