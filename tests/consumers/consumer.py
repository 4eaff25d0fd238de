"""What the tests of this folder share: the program, a folder for files, and what is skipped."""

import csv
import importlib.metadata
import itertools
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

EMPLACE = ""
LLAMA = ("llama3-8b:batch=2,sequence=4,layers=4,hidden=16,heads=4,kv_heads=2,intermediate=12,vocabulary=18,"
         "training=false")


def needs(module):
    try:
        return __import__(module)
    except ImportError:
        raise unittest.SkipTest(f"needs Python's {module}") from None


def needs_version(package, version):
    """Of a package that a process of its own is going to import."""
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise unittest.SkipTest(f"needs Python's {package} {version}") from None
    if numbers(found) < numbers(version):
        raise unittest.SkipTest(f"needs Python's {package} {version}, found {found}")


def numbers(version):
    return [int(part) for part in version.split(".")[:2] if part.isdigit()]


def program(name):
    if shutil.which(name) is None:
        raise unittest.SkipTest(f"needs {name}")
    return name


class ExportTest(unittest.TestCase):
    """A small Llama in a folder: placed by layers on four GPUs, and cut for two."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.emplace(f"zoo export {LLAMA} -o model.onnx")
        layers = "-c 4xp100 --granularity layer"
        cls.emplace(f"place model.onnx {layers} --placer expert --pin model.rotary=gpu0 -q -o placement.json")
        cls.emplace("partition model.onnx -c 2xp100 --method all-row -q -o plan.json")
        cls.placed = f"export model.onnx placement.json {layers} -f "
        cls.cut = "export model.onnx plan.json -f "
        cls.device_of = json.loads((cls.folder / "placement.json").read_text())["assignment"]
        cls.ops = {row["op"]: row for row in csv.DictReader(cls.emplace(cls.placed + "csv").splitlines())}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def emplace(cls, arguments):
        return cls.shell([EMPLACE, *arguments.split()])

    @classmethod
    def shell(cls, words):
        done = subprocess.run(words, cwd=cls.folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def write_weights(self, onnx):
        """Contents for the weights of the zoo's model, which has none."""
        sizes = {}
        for tensor in onnx.load(self.folder / "model.onnx", load_external_data=False).graph.initializer:
            entry = {item.key: item.value for item in tensor.external_data}
            end = int(entry["offset"]) + int(entry["length"])
            sizes[entry["location"]] = max(end, sizes.get(entry["location"], 0))
        for name, size in sizes.items():
            floats = itertools.islice(itertools.cycle(i / 997 - 0.4 for i in range(0, 997, 13)), size // 4)
            (self.folder / name).write_bytes(struct.pack(f"<{size // 4}f", *floats).ljust(size, b"\0"))


def main():
    global EMPLACE
    EMPLACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
