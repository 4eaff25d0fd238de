"""The tutorial's code, run as it stands, with test devices for its GPUs."""
import doctest
import importlib
import os
import pkgutil
import re

import emplace.torch
import emplace.torch._devices as devices
import emplace.torch._dispatch as dispatching
from fake_device import FakeDevice
from test_tools import ROOT


def blocks():
    with open(os.path.join(ROOT, "docs", "pytorch.md")) as file:
        return re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)


def test_examples_in_docstrings():
    with_examples = set()
    for info in pkgutil.iter_modules(emplace.torch.__path__):
        failed, tried = doctest.testmod(importlib.import_module(f"emplace.torch.{info.name}"))
        assert failed == 0, info.name
        if tried:
            with_examples.add(info.name)
    assert with_examples >= {"_capture", "_dispatch", "_onnx", "_place", "_profile"}


def test_the_tutorial(tmp_path, monkeypatch, capsys):
    real = devices.Device
    made = {}

    class AnyDevice(real):
        def __new__(cls, name, **options):
            if str(name).startswith("cuda"):
                return made.setdefault(name, FakeDevice(str(name)))
            return real(name, **options)

    for module in (devices, dispatching):
        monkeypatch.setattr(module, "Device", AnyDevice)
    monkeypatch.chdir(tmp_path)
    assert len(blocks()) >= 6
    namespace = {"__name__": "tutorial"}
    for number, block in enumerate(blocks()):
        path = tmp_path / f"block{number}.py"  # so that lines can be shown
        path.write_text(block)
        exec(compile(block, str(path), "exec"), namespace)
    printed = capsys.readouterr().out
    assert "a training step of" in printed and "looks at a tensor's contents" in printed
    assert "return x if x.sum() > 0 else -x" in printed
    assert (tmp_path / "net.json.gz").exists()
    assert made
    assert all(device.ops > 0 for device in made.values() if device.name == "cuda:0")
