#!/usr/bin/env python3
"""The command of docs/python.md that installs the package with pip, with what CMake has built already: the package has
its libraries, and works without the sources and the build.

    pip_test.py SOURCE BUILD LIBRARY...

Exit code 77: this Python cannot make virtual environments, or builds no packages.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

USE = """
import importlib.metadata, json, pathlib, sys
import emplace
answer = emplace.place(emplace.compile("zoo:alexnet", "2xp100"), "expert")
folder = pathlib.Path(emplace.__file__).parent
maps = {pathlib.Path(line.split()[-1]) for line in open("/proc/self/maps") if "/libemplace" in line}
print(json.dumps({
    "fits": answer.fits, "folder": str(folder), "version": importlib.metadata.version("emplace"),
    "own": emplace.version(), "files": sorted(path.name for path in folder.iterdir()),
    "loaded": sorted(map(str, maps)), "torch": (folder / "torch" / "__init__.py").exists()}))
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def documented(source):
    """The arguments of pip, as the page has them."""
    lines = (source / "docs/python.md").read_text().splitlines()
    (line,) = [line for line in lines if "/bin/pip install" in line]
    return line.split("/bin/pip ")[1].split()


def main(source, build, *libraries):
    if any(importlib.util.find_spec(name) is None for name in ("ensurepip", "setuptools", "wheel", "numpy")):
        return 77
    with tempfile.TemporaryDirectory() as folder:
        # A copy, as pip leaves files beside the sources.
        copy, venv = pathlib.Path(folder, "source"), pathlib.Path(folder, "venv")
        for name in ("python", "cmake"):
            shutil.copytree(source / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in ("setup.py", "pyproject.toml"):
            shutil.copy2(source / name, copy)
        run(sys.executable, "-m", "venv", "--system-site-packages", venv)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        run(venv / "bin/python", "-m", "pip", *documented(source), cwd=copy, env={**environment, "EMPLACE_BUILD": str(build)})
        shutil.rmtree(copy)
        found = json.loads(run(venv / "bin/python", "-c", USE, cwd=folder, env=environment))
        assert found["folder"].startswith(str(venv)), found
        assert found["fits"] and found["torch"] and found["version"] == found["own"].split("+")[0], found
        missing = {*libraries, "py.typed", "_emplace.pyi"} - set(found["files"])
        assert not missing, (missing, found)
        assert found["loaded"] and all(path.startswith(str(venv)) for path in found["loaded"]), found
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:3]), *sys.argv[3:]))
