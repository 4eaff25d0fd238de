"""A real GPU beside the CPU, where there is one."""
import random

import pytest
import torch

import emplace
import emplace.torch
from models import cross_entropy, eager, make

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
DEVICES = ["cuda:0", "cpu"]


@pytest.fixture(autouse=True)
def full_precision():
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def random_placement(captured, seed):
    problem = emplace.compile(captured.graph, "2xp100")
    rng = random.Random(seed)
    chosen = [rng.choice(DEVICES) for _ in range(max(problem.groups) + 1)]
    return {name: chosen[group] for name, group in zip(captured.graph.op_names, problem.groups)}


def close(ours, theirs):
    """To 1e-5 of the largest number of the tensor."""
    torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=1e-5 * float(
        theirs.abs().max()) + 1e-7)


@pytest.mark.parametrize("name", ["gpt", "lstm"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_placements_train(name, seed):
    model, x, y = make(name)
    loss, gradients = eager(model, x, y)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y, portable=True)
    placed = emplace.torch.place(captured, devices=DEVICES,
                                 placement=random_placement(captured, seed))
    close(placed(x, y), loss)
    for key, parameter in model.named_parameters():
        assert parameter.grad.device == parameter.device
        close(parameter.grad, gradients[key])
    assert {parameter.device.type for parameter in model.parameters()} == {"cuda", "cpu"}
    placed.gather("cpu")
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}


def test_steps_with_an_optimizer_on_the_gpu():
    model, x, y = make("gpt")
    reference, _, _ = make("gpt")
    placed = emplace.torch.place(model, x, loss=cross_entropy, targets=y, devices=DEVICES, seconds=1,
                                 optimizer=torch.optim.Adam(model.parameters(), lr=1e-3))
    optimizer = torch.optim.Adam(reference.parameters(), lr=1e-3)
    for _ in range(3):
        ours = placed(x, y)
        optimizer.zero_grad()
        loss = cross_entropy(reference(x), y)
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(ours.cpu(), loss.detach(), rtol=1e-4, atol=1e-5)


def test_ops_are_timed_on_both():
    model, x, _ = make("gpt")
    captured = emplace.torch.capture(model.eval(), x, portable=True)
    profile = emplace.torch.profile(captured, devices=DEVICES, steps=5)
    timed = [op["time_us"] for op in captured.to_dict()["ops"] if "time_us" in op]
    assert timed and all(set(times) == set(DEVICES) for times in timed)
    assert profile.bandwidth("cpu", "cuda:0") > 1e8
    total = sum(times["cuda:0"] for times in timed) / 1e6
    assert 0.2 < total / profile.steps["cuda:0"] < 1.2


def test_modules_on_both():
    model, x, _ = make("gpt")
    model.eval()
    with torch.no_grad():
        expected = model(x)
    captured = emplace.torch.capture(model, x, portable=True)
    alone = emplace.place(emplace.compile(captured.graph, "1xp100"), "single").used[0]
    devices = [emplace.torch.Device("cuda:0", memory=int(0.7 * alone)), "cpu"]
    found = emplace.torch.device_map(captured, devices=devices, offload="run", seconds=1)
    assert "cpu" in found.values()
    emplace.torch.dispatch(model, found)
    with torch.no_grad():
        close(model(x), expected)


def test_a_model_on_the_gpu_is_captured_there():
    model, x, y = make("gpt")
    model.cuda()
    with pytest.raises(emplace.Error, match="'tokens': is on cpu and the model on cuda:0"):
        emplace.torch.capture(model, x)
    captured = emplace.torch.capture(model, x.cuda(), loss=cross_entropy, targets=y.cuda())
    loss, gradients = captured.run(x.cuda(), y.cuda())
    expected = cross_entropy(model(x.cuda()), y.cuda())
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-5, atol=1e-6)
    assert all(gradient.is_cuda for gradient in gradients.values())
