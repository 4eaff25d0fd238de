"""Annotations of what is public, for users' type checkers."""
import inspect
import subprocess
import sys

import pytest

import emplace.torch

CLIENT = """
import torch
import emplace
import emplace.torch

net = torch.nn.Linear(4, 4)
captured: emplace.torch.Capture = emplace.torch.capture(net, (torch.ones(1, 4),), loss=torch.sum)
times: dict[str, float] = emplace.torch.profile(captured, devices=["cpu"]).steps
placed = emplace.torch.place(captured, devices=[emplace.torch.Device("cpu", memory="1GiB")], seconds=1)
answer: emplace.Answer = placed.answer
model: emplace.Model = emplace.torch.onnx_model(net, {"input": torch.ones(1, 4)}, training=True)
share: float = emplace.torch.device_map(net, torch.ones(1, 4), max_memory={0: "1GiB", "cpu": 5}).cost()
"""
WRONG = """
emplace.torch.place(captured, devices=["cpu"], seconds="five")
emplace.torch.capture(net, torch.ones(4), losses=torch.sum)
emplace.torch.Device("cpu", memory=[1])
graph: str = captured.graph
emplace.torch.profile(net, devices=["cpu"])
"""


def public():
    for name in emplace.torch.__all__:
        value = getattr(emplace.torch, name)
        if inspect.isfunction(value):
            yield name, value
            continue
        for key, member in vars(value).items():
            member = member.fget if isinstance(member, property) else member
            if inspect.isfunction(member) and not key.startswith("_"):
                yield f"{name}.{key}", member


# What the package gives these itself.
INTERNAL = {"Capture.result"}


@pytest.mark.parametrize("name, function", [pair for pair in public() if pair[0] not in INTERNAL])
def test_everything_public_is_annotated(name, function):
    signature = inspect.signature(function)
    missing = [key for key, parameter in signature.parameters.items()
               if key != "self" and parameter.annotation is inspect.Parameter.empty]
    assert not missing and signature.return_annotation is not inspect.Signature.empty


def test_users_are_told_of_wrong_types(tmp_path):
    pytest.importorskip("mypy")
    client = tmp_path / "client.py"
    client.write_text(CLIENT + WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=/dev/null", "--ignore-missing-imports", client],
        capture_output=True, text=True, cwd=tmp_path,
        env={"PATH": "/usr/bin", "MYPYPATH": emplace.__path__[0].rpartition("/")[0]})
    lines = [int(line.split(":")[1]) for line in done.stdout.splitlines() if "error:" in line]
    first = CLIENT.count("\n") + 2
    assert lines == [*range(first, first + 5)], done.stdout + done.stderr
