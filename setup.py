"""`pip install .`: CMake builds the library and the module, which the wheel contains."""

import pathlib
import re

from skbuild import setup

here = pathlib.Path(__file__).parent
version = re.search(r"project\(emplace VERSION (\S+)", (here / "CMakeLists.txt").read_text())[1]

setup(
    version=version,
    packages=["emplace", *(f"emplace.{folder.name}" for folder in (here / "python/emplace").iterdir()
                           if (folder / "__init__.py").exists())],
    package_dir={"": "python"},
    package_data={"emplace": ["*.pyi", "py.typed"]},
    cmake_install_dir="python",
    cmake_args=["-DEMPLACE_DEVELOPER=OFF", "-DEMPLACE_PYTHON=ON"],
)
