"""Times that are measured go into the graph, and from there into problems."""
import copy
import threading
import time

import pytest
import torch
from torch import nn

import emplace
import emplace.torch
from fake_device import FakeDevice
from models import cross_entropy, make


def test_every_op_that_computes_is_timed():
    model, x, y = make("gpt")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y)
    profile = emplace.torch.profile(captured, devices=["cpu"], steps=5)
    timed = {op["name"]: op["time_us"]["cpu"] for op in captured.to_dict()["ops"]
             if "time_us" in op}
    computing = [op["name"] for op in captured.to_dict()["ops"] if op["outputs"]
                 and op["type"] not in ("parameter", "buffer", "input", "constant")]
    assert set(computing) == set(timed)
    assert all(time > 0 for time in timed.values())
    # The rest of a step is the interpreter's, and others' where the machine is busy.
    assert 0.01 < sum(timed.values()) / 1e6 / profile.steps["cpu"] <= 1.5
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert "cpu" in repr(profile)


class Sleepy(torch.optim.SGD):
    """A step takes a tenth of a second, beside what it takes."""

    def step(self):
        slept.append(sum(len(group["params"]) for group in self.param_groups))
        time.sleep(0.1)
        return super().step()


slept = []


@pytest.mark.parametrize("device", ["cpu", "test:0"])
@pytest.mark.parametrize("before", [0, 2])
def test_updates_are_timed_by_their_bytes(device, before):
    net, x = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 192, bias=False)), torch.randn(3, 64)
    optimizer = Sleepy(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(before):
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    kept = copy.deepcopy((net.state_dict(), optimizer.state_dict()))
    captured = emplace.torch.capture(net, x, loss=torch.sum, optimizer=optimizer)
    devices = [device if device == "cpu" else FakeDevice(device)]
    slept.clear()
    emplace.torch.profile(captured, devices=devices, steps=2, warm_up=0)
    assert slept == [3] * 3
    times = {op["name"]: op["time_us"][device] for op in captured.to_dict()["ops"]
             if op["phase" if "phase" in op else "name"] == "update"}
    assert set(times) == {"0.weight.sleepy_update", "0.bias.sleepy_update", "1.weight.sleepy_update"}
    assert sum(times.values()) > 0.1e6
    assert times["1.weight.sleepy_update"] == pytest.approx(3 * times["0.weight.sleepy_update"], rel=1e-3)
    assert times["0.weight.sleepy_update"] == pytest.approx(64 * times["0.bias.sleepy_update"], rel=1e-3)
    for old, new in zip(kept, (net.state_dict(), optimizer.state_dict())):
        assert str(old) == str(new)
    assert all(parameter.grad is None for parameter in net.parameters())


class Clipping(Sleepy):
    """With attributes of its own, one of which reads the parameters."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)
        self.limit, self.first = 1.0, self.param_groups[0]["params"][0]

    def step(self):
        self.first.grad.clamp_(-self.limit, self.limit)
        return super().step()


def test_attributes_of_an_optimizers_own_are_copied():
    net = nn.Linear(8, 8)
    optimizer = Clipping(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)  # replaces the object's step
    before = copy.deepcopy((net.state_dict(), optimizer.state_dict(), scheduler.state_dict()))
    captured = emplace.torch.capture(net, torch.randn(3, 8), loss=torch.sum, optimizer=optimizer)
    slept.clear()
    emplace.torch.profile(captured, devices=["cpu"], steps=2, warm_up=0)
    assert len(slept) == 3
    times = {op["name"]: op["time_us"]["cpu"] for op in captured.to_dict()["ops"] if op.get("phase") == "update"}
    assert len(times) == 2 and sum(times.values()) > 0.1e6
    assert str(before) == str((net.state_dict(), optimizer.state_dict(), scheduler.state_dict()))


def test_updates_of_an_optimizer_that_cannot_be_copied_are_estimated():
    net = nn.Linear(8, 8)
    optimizer = Sleepy(net.parameters(), lr=0.1)
    optimizer.lock = threading.Lock()
    captured = emplace.torch.capture(net, torch.randn(3, 8), loss=torch.sum, optimizer=optimizer)
    with pytest.warns(UserWarning, match=r"optimizer Sleepy cannot be tried \(.*lock.*\), so its updates' times"):
        emplace.torch.profile(captured, devices=["cpu"], steps=2, warm_up=0)
    timed = {op.get("phase", "forward"): "time_us" in op for op in captured.to_dict()["ops"]
             if op["type"] not in ("parameter", "input")}
    assert timed["forward"] and not timed["update"]
    placed = emplace.torch.place(captured, devices=["cpu"], placer="single")
    update = captured.graph.op_names.index("weight.sleepy_update")
    assert placed.answer.problem.durations[update, 0] > 0


def test_larger_products_take_longer():
    net = nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 2048), nn.Linear(2048, 2048))
    captured = emplace.torch.capture(net, torch.randn(64, 32))
    emplace.torch.profile(captured, devices=["cpu"], steps=7)
    times = {op["name"]: op["time_us"]["cpu"] for op in captured.to_dict()["ops"]
             if op["type"] == "addmm"}
    assert times["2.addmm"] > 5 * times["0.addmm"]


def test_placing_uses_the_times():
    model, x, _ = make("lstm")
    captured = emplace.torch.capture(model.eval(), x)
    product = next(op["name"] for op in captured.to_dict()["ops"]
                   if op.get("module") == "head" and "flops" in op)
    captured.set_times({product: {"cpu": 12345.0}})
    placed = emplace.torch.place(captured, devices=["cpu"], placer="single")
    number = captured.graph.op_names.index(product)
    assert placed.answer.problem.durations[number, 0] == 12_345_000


def test_place_measures_where_it_is_told_to():
    model, x, _ = make("lstm")
    placed = emplace.torch.place(model.eval(), x, devices=["cpu"], profile=True, placer="single")
    assert any("time_us" in op for op in placed.capture.to_dict()["ops"])


def test_links_are_measured_between_every_two_devices():
    model, x, _ = make("lstm")
    captured = emplace.torch.capture(model.eval(), x)
    devices = [FakeDevice("test:0"), FakeDevice("test:1")]
    profile = emplace.torch.profile(captured, devices=devices, steps=2, warm_up=0)
    assert [(link["from"], link["to"]) for link in profile.links] == [
        ("test:0", "test:1"), ("test:1", "test:0")]
    assert profile.bandwidth("test:0", "test:1") > 1e6
    with pytest.raises(emplace.Error, match="was not measured"):
        profile.bandwidth("test:0", "test:7")


def test_mistakes_are_explained():
    model, x, _ = make("lstm")
    with pytest.raises(emplace.Error, match="expected what emplace.torch.capture returns, not Lstm"):
        emplace.torch.profile(model, devices=["cpu"])
    captured = emplace.torch.capture(model.eval(), x)
    with pytest.raises(emplace.Error, match="at least one step, not 0"):
        emplace.torch.profile(captured, devices=["cpu"], steps=0)
    with pytest.raises(emplace.Error, match="expected no cluster beside it"):
        emplace.torch.place(captured, devices=["cpu"], profile=True, cluster="1xp100")
