"""A real GPU beside the CPU, where there is one."""
import copy
import random

import pytest
import torch

import emplace
import emplace.torch
from hugging_face import HUGGING_FACE, eager_step, make_theirs
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
    """To 1e-5 of the largest number of the tensor; 1e-6 for gradients that are rounding errors alone."""
    theirs = theirs.cpu()
    torch.testing.assert_close(ours.cpu(), theirs, rtol=0, atol=1e-5 * float(
        theirs.abs().max()) + 1e-6)


def repeatable(name):
    """The model such that both devices can compute the same."""
    model, x, y = make(name)
    if name == "resnet18":  # norms over few numbers make more of the last bits
        model, x = model.double(), x.double()
    return model.eval() if name in ("encoder", "vit") else model, x, y  # no dropout


NAMES = ["gpt", "lstm", "encoder", "vit", "resnet18"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_placements_train(name, seed):
    model, x, y = repeatable(name)
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


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_hugging_face_models_train(name):
    transformers = pytest.importorskip("transformers")
    model, inputs, loss = make_theirs(transformers, name)
    value, gradients = eager_step(model, inputs, loss)
    captured = emplace.torch.capture(model, inputs, loss=loss, portable=True)
    placed = emplace.torch.place(captured, devices=DEVICES,
                                 placement=random_placement(captured, 1))
    close(placed(**inputs), value)
    for key, parameter in model.named_parameters():
        assert (parameter.grad is None) == (gradients[key] is None), key
        if parameter.grad is not None:
            close(parameter.grad, gradients[key])


@pytest.mark.parametrize("offload", ["run", "send"])
@pytest.mark.parametrize("name", HUGGING_FACE)
def test_accelerate_takes_the_maps(name, offload):
    transformers, accelerate = map(pytest.importorskip, ("transformers", "accelerate"))
    model, inputs, _ = make_theirs(transformers, name)
    inputs.pop("labels", None)
    model.eval()
    with torch.no_grad():
        expected = model(**inputs)
    size = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    found = emplace.torch.device_map(model, inputs, offload=offload, seconds=1,
                                     max_memory={0: int(0.7 * size), "cpu": "4GiB"})
    dispatched = accelerate.dispatch_model(copy.deepcopy(model), dict(found), force_hooks=True,
                                           main_device=found.main_device)
    with torch.no_grad():
        output = dispatched(**inputs)
    for key, value in expected.items():
        close(output[key], value)


@pytest.mark.skipif(not hasattr(torch, "export"), reason="torch.export is of PyTorch 2.1 and later")
def test_an_exported_program_trains():
    model, x, y = make("gpt")
    loss, gradients = eager(model, x, y)
    captured = emplace.torch.capture(torch.export.export(model, (x,)), loss=cross_entropy, targets=y,
                                     portable=True)
    placed = emplace.torch.place(captured, devices=DEVICES,
                                 placement=random_placement(captured, 1))
    close(placed(x, y), loss)
    ours = {key: parameter.grad for key, parameter in placed.model.named_parameters()}
    assert set(gradients) <= set(ours)
    for key, gradient in gradients.items():
        close(ours[key], gradient)


def test_onnx_takes_a_model_on_the_gpu():
    model, x, _ = make("gpt")
    read = emplace.torch.onnx_model(model.cuda(), x.cuda())
    assert read.graph.parameters == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
def test_steps_with_an_optimizer_on_the_gpu(options):
    if options.get("fused") and not hasattr(torch, "export"):
        pytest.skip("on the CPU, fused optimizers are of PyTorch 2.4 and later")
    model, x, y = make("gpt")
    reference, _, _ = make("gpt")
    placed = emplace.torch.place(model, x, loss=cross_entropy, targets=y, devices=DEVICES, seconds=1,
                                 optimizer=torch.optim.Adam(model.parameters(), lr=1e-3, **options))
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
    on_cpu, on_gpu = (sum(times[name] for times in timed) / 1e6 for name in ("cpu", "cuda:0"))
    assert 0.2 < on_cpu / profile.steps["cpu"] < 1.2
    assert on_gpu < 1.2 * profile.steps["cuda:0"]  # the host's launches are the rest


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


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_model_on_the_gpu_is_captured_there(name, portable):
    model, x, y = repeatable(name)
    model.cuda()
    with pytest.raises(emplace.Error, match=": is on cpu and the model on cuda:0"):
        emplace.torch.capture(model, x)
    x, y = x.cuda(), y.cuda()
    loss, gradients = eager(model, x, y)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y, portable=portable)
    ours, theirs = captured.run(x, y)
    close(ours, loss)
    assert set(gradients) == set(theirs)
    for key, gradient in gradients.items():
        assert theirs[key].is_cuda
        close(theirs[key], gradient)
    placed = emplace.torch.place(captured, devices=["cuda:0"], profile=True, placer="single")
    close(placed(x, y), loss)


def test_dropout_on_the_gpu_draws_as_the_model_does():
    model, x, y = make("encoder")
    model.cuda()
    x, y = x.cuda(), y.cuda()
    loss, _ = eager(model, x, y)
    placed = emplace.torch.place(model, x, loss=cross_entropy, targets=y, devices=["cuda:0"],
                                 placer="single")
    torch.manual_seed(7)
    close(placed(x, y), loss)
