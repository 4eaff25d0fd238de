"""`pip install .`: CMake builds the library and the module, which the wheel contains.

EMPLACE_BUILD=build takes what that folder of CMake's has built instead; CMAKE_ARGS are further arguments of CMake.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r"project\(emplace VERSION (\S+)", (HERE / "CMakeLists.txt").read_text())[1]


def pybind11_options() -> list[str]:
    """Where this Python has pybind11 as a package, CMake takes that one."""
    try:
        import pybind11
        return [f"-Dpybind11_DIR={pybind11.get_cmake_dir()}"]
    except ImportError:  # also where it came without its files for CMake
        return []


def built(folder: pathlib.Path) -> pathlib.Path:
    """The folder in which CMake has built the package."""
    if "EMPLACE_BUILD" in os.environ:
        return pathlib.Path(os.environ["EMPLACE_BUILD"])
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    options = ["-DEMPLACE_DEVELOPER=OFF", "-DEMPLACE_PYTHON=ON", "-DEMPLACE_MPI=OFF"]
    options += [f"-DPython_EXECUTABLE={sys.executable}"]
    options += pybind11_options()
    options += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    subprocess.run(["cmake", "-S", HERE, "-B", folder, *generator, *options], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "emplace_package", "--parallel"], check=True)
    return folder


class BuildPackage(build_py):
    def run(self) -> None:
        super().run()
        target = pathlib.Path(self.build_lib).resolve()
        build = built(pathlib.Path(self.get_finalized_command("build").build_temp).resolve())
        subprocess.run(["cmake", "--install", build, "--component", "wheel", "--prefix", target], check=True)
        # Archives have no links: of a library's names, the one that is asked for.
        for link in sorted((target / "emplace").glob("lib*.so*")):
            if link.is_symlink():
                real = link.resolve()
                link.unlink()
                shutil.copy2(real, link)
                if real.parent == link.parent:
                    real.unlink()


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


folders = [folder.parent for folder in (HERE / "python/emplace").rglob("__init__.py")]
setup(
    version=VERSION,
    packages=[".".join(folder.relative_to(HERE / "python").parts) for folder in folders],
    package_dir={"": "python"},
    package_data={"emplace": ["*.pyi", "py.typed"]},
    cmdclass={"build_py": BuildPackage},
    distclass=BinaryDistribution,
    options={"build": {"build_base": "build-wheel"}},
)
