"""Placements by modules: which of them can be apart, hooks that run them, what they cost."""
import copy
import random
import types

import pytest
import torch

import emplace
import emplace.torch
from emplace.torch import _device_map
from emplace.torch._dispatch import key_for
from emplace.torch._stream import Part, choose_resident, send_seconds
from emplace.torch._units import Units
from fake_device import FakeDevice, On, bare
from models import MODELS, cross_entropy, eager, make


def fakes(count, **options):
    return [FakeDevice(f"test:{i}", **options) for i in range(count)]


def units_of(name):
    model, x, y = make(name)
    return Units(emplace.torch.capture(model, x, loss=cross_entropy, targets=y), ["target"])


def test_residual_adds_stay_with_their_block():
    units = units_of("resnet18")
    assert "layer1.0" in units.names and "layer1.0.conv1" not in units.names
    # With a downsampling branch both operands of the add are children's: these stay together.
    assert "layer2.0.conv1" in units.names and "layer2.0" not in units.names
    assert units.part_of("layer2.0.bn2") == units.part_of("layer2.0.downsample.1")
    assert units.part_of("layer2.0.bn2") != units.part_of("layer2.0.conv1")


def test_tied_weights_stay_together():
    units = units_of("gpt")
    assert units.part_of("embed") == units.part_of("head")
    assert units.part_of("blocks.0") not in (units.part_of("blocks.1"), units.part_of("head"))


def test_parameters_of_modules_that_are_taken_apart():
    units = units_of("vit")
    assert "encoder.pos_embedding" in units.keys()
    assert units.part_of("encoder.pos_embedding") == units.part_of("conv_proj")
    assert "encoder.layers.encoder_layer_0" in units.names


MAKES_TENSORS = {"efficientnet", "gru", "lstm"}  # on input.device, which test devices do not show


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", sorted(set(MODELS) - MAKES_TENSORS))
def test_any_map_of_parts_trains_bit_for_bit(name, count):
    """Parts at random, which shows that what may be apart can be."""
    model, x, y = make(name)
    loss, gradients = eager(model, x, y)
    units = Units(emplace.torch.capture(model, x, loss=cross_entropy, targets=y), ["target"])
    rng, devices, chosen = random.Random(count), fakes(count), {}
    where = {key: chosen.setdefault(units.part_of(key), rng.choice(devices).name)
             for key in units.keys()}
    main = chosen.get(units.part_of(""), devices[0].name)
    emplace.torch.dispatch(model, where, main_device=main, devices=devices)
    torch.manual_seed(7)
    output = model(On(x, main))
    ours = cross_entropy(output, On(y, output.place))
    assert torch.equal(loss, bare(ours.detach()))
    parameters = list(model.parameters())
    theirs = torch.autograd.grad(ours, parameters, allow_unused=True)
    for (key, _), gradient in zip(model.named_parameters(), theirs):
        assert torch.equal(gradients[key], bare(gradient)), key
    assert type(model).__name__ in repr(model)


def test_undispatch_takes_the_hooks_off():
    model, x, _ = make("gpt")
    before = model(x)
    emplace.torch.dispatch(model, {name: "cpu" for name, _ in model.named_children()} | {
        "position": "cpu"})
    assert "forward" in model.embed.__dict__
    with pytest.raises(emplace.Error, match="is dispatched already"):
        emplace.torch.dispatch(model, {"": "cpu"})
    emplace.torch.undispatch(model)
    assert not any("forward" in module.__dict__ for module in model.modules())
    assert torch.equal(before, model(x))


def test_copies_of_a_dispatched_model_have_weights_of_their_own():
    net, x = torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.ones(1, 2)
    emplace.torch.dispatch(net, {"": "cpu"})
    before, copied = net(x), copy.deepcopy(net)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.zero_()
    assert torch.equal(copied(x), torch.zeros(1, 2)) and torch.equal(net(x), before)
    emplace.torch.undispatch(copied)
    assert torch.equal(copied(x), torch.zeros(1, 2))


def test_a_forward_of_the_module_itself_comes_back():
    net, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    own = types.MethodType(lambda self, x: self.bias + x, net)
    net.forward = own
    emplace.torch.dispatch(net, {"": "cpu"})
    assert torch.equal(net(x), net.bias + x)
    copied = copy.deepcopy(net)
    with torch.no_grad():
        copied.bias.zero_()
    assert torch.equal(copied(x), x)
    emplace.torch.undispatch(net)
    assert net.__dict__["forward"] is own and torch.equal(net(x), net.bias + x)
    assert not [key for key in net.__dict__ if "dispatched" in key]


def test_targets_may_be_structured():
    net, x = torch.nn.Linear(4, 2), torch.ones(3, 4)
    captured = emplace.torch.capture(
        net, x, loss=lambda output, pair: ((output - pair[0]) * pair[1]).sum(),
        targets=((torch.ones(3, 2), torch.ones(3, 2)),))
    assert _device_map._target_names(captured) == captured.trace.inputs[1:]
    assert len(captured.trace.inputs) == 3


def test_a_map_that_emplace_finds_runs_and_says_what_it_costs():
    model, x, y = make("gpt")
    loss, _ = eager(model, x, y)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y)
    alone = emplace.place(emplace.compile(captured.graph, "1xp100"), "single").used[0]
    devices = fakes(2, memory=int(0.8 * alone))
    found = emplace.torch.device_map(captured, devices=devices, seconds=2)
    assert set(found.values()) == {"test:0", "test:1"}
    assert found["embed"] == found["head"]
    assert found.answer.fits and found.seconds > 0
    assert 0 <= found.cost(seconds=1)
    emplace.torch.dispatch(model, found, devices=devices)
    torch.manual_seed(7)
    output = model(On(x, "test:0"))
    assert torch.equal(loss, bare(cross_entropy(output, On(y, output.place)).detach()))


def test_containers_take_the_place_of_their_modules():
    model, x, _ = make("resnet18")
    found = emplace.torch.device_map(model.eval(), x, devices=["cpu"], seconds=1)
    assert set(found) == {name for name, _ in model.named_children()}
    assert set(found.values()) == {"cpu"} and found.main_device == "cpu"


def brute_force(parts, memory, bandwidth, per_tensor):
    best = None
    for mask in range(2 ** len(parts)):
        stay = [part for i, part in enumerate(parts) if mask >> i & 1]
        sent = [part for i, part in enumerate(parts) if not mask >> i & 1]
        room = max((part.largest for part in sent), default=0)
        if sum(part.resident_bytes for part in stay) + room <= memory:
            seconds = sum(send_seconds(part, bandwidth, per_tensor) for part in sent)
            best = seconds if best is None else min(best, seconds)
    return best


def test_what_stays_is_the_best_choice():
    rng = random.Random(1)
    for case in range(60):
        parts = []
        for i in range(rng.randint(1, 9)):
            size = rng.randint(1, 40)
            parts.append(Part(str(i), size, size * rng.choice((1, 1, 2)), rng.randint(1, 3),
                              rng.randint(1, size)))
        memory = rng.randint(1, sum(part.resident_bytes for part in parts))
        expected = brute_force(parts, memory, 10.0, 0.5)
        found = choose_resident(parts, memory, 10.0, 0.5)
        if expected is None:
            assert found is None
            continue
        stay, seconds = found
        assert seconds == pytest.approx(expected), case
        sent = [part for part in parts if part.key not in stay]
        assert sum(part.resident_bytes for part in parts if part.key in stay) + max(
            (part.largest for part in sent), default=0) <= memory


def with_gpu(monkeypatch):
    """cuda:0 is a test device."""
    real = emplace.torch.Device

    def make_device(name, **options):
        if str(name).startswith("cuda"):
            return FakeDevice(str(name), memory=options["memory"])
        return real(name, **options)

    monkeypatch.setattr(_device_map, "Device", make_device)


def bytes_on(model, found, device):
    """Of parameters, tied ones once."""
    return sum(parameter.numel() * 4 for name, parameter in model.named_parameters()
               if found[key_for(name, found)] == device)


@pytest.mark.parametrize("name", ["gpt", "vit", "resnet18", "encoder"])
def test_weights_that_are_sent_are_the_fewest(name, monkeypatch):
    with_gpu(monkeypatch)
    model, x, _ = make(name)
    total = sum(parameter.numel() * 4 for parameter in model.parameters())
    memory = int(0.7 * total)
    found = emplace.torch.device_map(model.eval(), x, offload="send",
                                     max_memory={0: memory, "cpu": "4GiB"})
    assert found.answer is None and found.main_device == 0 and set(found.values()) == {0, "cpu"}
    resident = bytes_on(model, found, 0)
    largest = max(sum(parameter.numel() * 4 for parameter in module.parameters(recurse=False))
                  for path, module in model.named_modules()
                  if path and found.get(key_for(path, found)) == "cpu")
    assert resident + largest <= memory
    assert found.sent_bytes >= total - resident
    with pytest.raises(emplace.Error, match="weights are sent"):
        found.cost()


def test_the_faster_of_sending_and_computing_is_taken(monkeypatch):
    with_gpu(monkeypatch)
    model, x, _ = make("gpt")
    captured = emplace.torch.capture(model.eval(), x)
    limits = {0: 80_000, "cpu": "4GiB"}
    maps = {offload: emplace.torch.device_map(captured, max_memory=limits, offload=offload,
                                              seconds=1) for offload in ("run", "send", "auto")}
    assert maps["run"].main_device == "cpu" and maps["send"].main_device == 0
    assert maps["auto"].seconds == min(maps["run"].seconds, maps["send"].seconds)
    # All of it fits: nothing is on the CPU then.
    roomy = emplace.torch.device_map(captured, max_memory={0: "1GiB", "cpu": "4GiB"}, seconds=1)
    assert set(roomy.values()) == {0} and roomy.main_device == 0


def test_mistakes_are_explained():
    model, x, _ = make("gpt")
    with pytest.raises(emplace.Error, match="expected either devices or max_memory"):
        emplace.torch.device_map(model, x)
    with pytest.raises(emplace.Error, match="offload 'maybe': expected auto, run or send"):
        emplace.torch.device_map(model, x, devices=["cpu"], offload="maybe")
    with pytest.raises(emplace.Error, match="expected one GPU and the CPU"):
        emplace.torch.device_map(model, x, devices=["cpu"], offload="send")
    with pytest.raises(emplace.Error, match="'nothing' is no module or parameter"):
        emplace.torch.dispatch(model, {"nothing": "cpu"})
    with pytest.raises(emplace.Error, match="has no device for 'position'"):
        emplace.torch.dispatch(model, {name: "cpu" for name, _ in model.named_children()})
    devices = fakes(2)
    apart = {name: "test:0" for name, _ in model.named_children()}
    with pytest.raises(emplace.Error, match="'embed.weight' is tied to head.weight"):
        emplace.torch.dispatch(model, {**apart, "head": "test:1", "position": "test:0"},
                               devices=devices)
    with pytest.raises(emplace.Error, match="fit"):
        emplace.torch.device_map(model, x, devices=fakes(2, memory=10_000), seconds=1)
