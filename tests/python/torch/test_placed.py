"""A placed step computes what the model does, on test devices that refuse to be mixed."""
import copy
import gc
import json
import random
import warnings

import pytest
import torch
from torch import nn

import emplace
import emplace.torch
from emplace.torch._devices import cluster_of
from emplace.torch._move import move_state
from fake_device import FakeDevice, On, bare
from models import LAST_BITS, MODELS, cross_entropy, eager, make, same


def fakes(count, **options):
    return [FakeDevice(f"test:{i}", **options) for i in range(count)]


def random_placement(captured, devices, seed):
    """Every group of ops that must be together, anywhere."""
    cluster = f"{len(devices)}xp100"
    problem = emplace.compile(captured.graph, cluster)
    rng = random.Random(seed)
    chosen = [rng.choice(devices).name for _ in range(max(problem.groups) + 1)]
    return cluster, {name: chosen[group]
                     for name, group in zip(captured.graph.op_names, problem.groups)}


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("name", MODELS)
def test_random_placements_train_bit_for_bit(name, count):
    model, x, y = make(name)
    loss, gradients = eager(model, x, y)
    buffers = {key: value.clone() for key, value in model.named_buffers()}
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y)
    devices = fakes(count)
    cluster, placement = random_placement(captured, devices, seed=count)
    placed = emplace.torch.place(captured, devices=devices, cluster=cluster, placement=placement)
    torch.manual_seed(7)
    result = placed(x, y)
    assert same(name, loss, bare(result))
    parameters = dict(model.named_parameters())
    wrong = [key for key, gradient in gradients.items() if gradient is not None
             and not same(name, gradient, bare(parameters[key].grad))]
    assert wrong == []
    assert {parameter.grad.place == parameter.place for parameter in parameters.values()} == {True}
    assert all(device.ops > 0 for device in devices)
    # Buffers are as after one eager step.
    reference, _, _ = make(name)
    torch.manual_seed(7)
    reference(x)
    for key, value in reference.named_buffers():
        assert torch.equal(value, bare(dict(model.named_buffers())[key])), key
    assert set(buffers) == set(dict(reference.named_buffers()))


@pytest.mark.parametrize("make_optimizer", [
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    lambda p: torch.optim.AdamW(p, lr=0.01),
])
@pytest.mark.parametrize("name", ["resnet18", "gpt"])
def test_steps_with_an_optimizer_are_eager_bit_for_bit(name, make_optimizer):
    model, x, y = make(name)
    reference, _, _ = make(name)
    devices = fakes(3)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y,
                                     optimizer=make_optimizer(model.parameters()))
    cluster, placement = random_placement(captured, devices, seed=5)
    placed = emplace.torch.place(captured, devices=devices, cluster=cluster, placement=placement)
    theirs = make_optimizer(reference.parameters())
    for seed in range(3):
        torch.manual_seed(seed)
        ours = placed(x, y)
        torch.manual_seed(seed)
        loss = cross_entropy(reference(x), y)
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        assert torch.equal(loss.detach(), bare(ours))
    trained = dict(model.state_dict())
    for key, value in reference.state_dict().items():
        assert torch.equal(value, bare(trained[key])), key
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_tensor_is_copied_once_to_each_device():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(4, 4, bias=False)

        def forward(self, x):
            y = self.one(x)
            return y.sin() + y.cos() + y.tanh()

    net, x = Net(), torch.randn(2, 4)
    with torch.no_grad():
        expected = net(x)
    captured = emplace.torch.capture(net, x)
    devices = fakes(2)
    away = {"sin", "cos", "tanh", "add", "add_2"}
    placement = {name: devices[name in away].name for name in captured.graph.op_names}
    placed = emplace.torch.place(captured, devices=devices, cluster="2xp100", placement=placement)
    result = placed(x)
    assert torch.equal(bare(result), expected)
    assert placed.program.copies == 1 and placed.program.copied_bytes == 2 * 4 * 4
    assert placed.answer.timeline.num_transfers == 1
    assert result.place == devices[1].name


class Projected(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 20, 2, bidirectional=True, proj_size=7)
        self.head = nn.Linear(14, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


@pytest.mark.parametrize("seed", range(3))
def test_copies_lie_in_memory_as_what_they_are_copies_of(seed):
    torch.manual_seed(1)
    net, x, y = Projected(), torch.randn(5, 3, 12), torch.randint(0, 10, (5, 3))
    loss, gradients = eager(net, x, y)
    captured = emplace.torch.capture(net, x, loss=cross_entropy, targets=y)
    devices = fakes(3)
    cluster, placement = random_placement(captured, devices, seed)
    placed = emplace.torch.place(captured, devices=devices, cluster=cluster, placement=placement)
    assert torch.equal(loss, bare(placed(x, y)))
    wrong = [key for key, parameter in net.named_parameters()
             if not torch.equal(gradients[key], bare(parameter.grad))]
    assert LAST_BITS or wrong == []


def test_emplace_finds_a_placement_that_runs():
    model, x, y = make("gpt")
    loss, gradients = eager(model, x, y)
    placed = emplace.torch.place(model, x, loss=cross_entropy, targets=y, devices=fakes(2),
                                 placer="heft", seconds=1)
    torch.manual_seed(7)
    assert torch.equal(loss, bare(placed(x, y)))
    assert placed.answer.placer == "heft" and placed.answer.fits
    assert set(placed.device_of) == set(placed.capture.graph.op_names)
    assert isinstance(model.embed.weight.data, On)


@pytest.mark.parametrize("devices", [fakes(3), ["cpu"]])
@pytest.mark.parametrize("name", ["resnet18", "gpt", "encoder", "lstm"])
def test_a_placed_model_trains_and_infers_in_turns(name, devices):
    def optimizer_of(model):
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    (model, x, y), (reference, _, _) = make(name), make(name)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y, optimizer=optimizer_of(model))
    options = {}
    if len(devices) > 1:
        options["cluster"], options["placement"] = random_placement(captured, devices, seed=4)
    placed, theirs = emplace.torch.place(captured, devices=devices, seconds=0.5, **options), optimizer_of(reference)
    assert placed.training
    for step, training in enumerate([True, False, False, True, True, False]):
        assert placed.train(training) is placed
        reference.train(training)
        torch.manual_seed(step)
        ours = placed(x, y) if training else placed(x)
        torch.manual_seed(step)
        if not training:
            with torch.no_grad():
                assert same(name, reference(x), bare(ours))
            continue
        loss = cross_entropy(reference(x), y)
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        assert same(name, loss.detach(), bare(ours))
    for key, value in reference.state_dict().items():
        assert same(name, value, bare(placed.state_dict()[key])), key
    assert all(same(name, value, bare(dict(placed.named_buffers())[key])) for key, value in reference.named_buffers())


def test_a_placed_model_is_a_module_with_the_models_own_names():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.randn(3, 4)
    placed = emplace.torch.place(net, x, loss=torch.sum, devices=["cpu"], placer="single")
    assert isinstance(placed, nn.Module) and placed.get_submodule("0") is net[0]
    for names in ("named_parameters", "named_buffers", "named_children", "state_dict"):
        assert list(dict(getattr(placed, names)())) == list(dict(getattr(net, names)()))
    whole = nn.ModuleDict({"placed": placed, "head": nn.Linear(4, 1)})
    assert set(whole.state_dict()) == {"placed." + key for key in net.state_dict()} | {"head.weight", "head.bias"}
    whole.load_state_dict({key: torch.ones_like(value) for key, value in whole.state_dict().items()})
    assert (net[0].weight == 1).all() and (net[1].running_var == 1).all()
    placed.load_state_dict({key: value + 1 for key, value in placed.state_dict().items()})
    assert (net[0].weight == 2).all()
    placed(x)
    placed.zero_grad(set_to_none=True)
    assert net[0].weight.grad is None
    for moved in (placed.double, placed.cpu, whole.half):
        with pytest.raises(emplace.Error, match=r"stays as it was placed; expected gather\(\)"):
            moved()
    with pytest.raises(emplace.Error, match=r"cannot be copied or pickled; expected its state_dict\(\)"):
        copy.deepcopy(placed)


def test_modules_may_be_called_as_what_a_placed_model_has():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.program, self.capture = nn.Linear(4, 4), nn.Linear(4, 2)
            self.register_buffer("devices", torch.ones(4))

        def forward(self, x):
            return self.capture(self.program(x) + self.devices)

    net, x = Net().eval(), torch.randn(3, 4)
    placed = emplace.torch.place(net, x, devices=["cpu"], placer="single")
    with torch.no_grad():
        assert torch.equal(placed(x), net(x))
    assert set(placed.state_dict()) == set(net.state_dict()) == {*dict(placed.named_parameters()), "devices"}
    for name, parameter in net.named_parameters():
        assert placed.get_parameter(name) is parameter
    assert placed.get_submodule("capture") is net.capture and placed.get_buffer("devices") is net.devices


def test_a_part_called_model_is_not_taken_for_the_model():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 4)
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x):
            return self.head(x) * self.scale

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.model, self.head = Inner(), nn.Linear(4, 2)
            self.register_buffer("scale", torch.ones(2))

        def forward(self, x):
            return self.head(self.model(x)) * self.scale

    net = Net()
    placed = emplace.torch.place(net, torch.randn(3, 4), devices=["cpu"], placer="single")
    assert placed.get_parameter("model.head.weight") is net.model.head.weight
    assert placed.get_submodule("model") is net.model and placed.get_submodule("model.head") is net.model.head
    assert placed.get_buffer("model.scale") is net.model.scale


def test_a_capture_is_placed_again():
    net, x, y = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2)), torch.randn(3, 4), torch.tensor([0, 1, 1])
    expected = copy.deepcopy(net).eval()(x)
    captured = emplace.torch.capture(net, x, loss=nn.functional.cross_entropy, targets=y)
    for seed in range(3):
        devices = fakes(2)
        cluster, placement = random_placement(captured, devices, seed)
        placed = emplace.torch.place(captured, devices=devices, cluster=cluster, placement=placement)
        assert torch.equal(bare(placed.eval()(x)), expected)
        placed.train()(x, y)


def test_why_there_is_no_eval_is_said_again():
    class Looks(nn.Linear):
        def forward(self, x):
            return super().forward(x) if self.training or x.sum() > 0 else x

    net, x = Looks(4, 2), torch.ones(3, 4)
    captured = emplace.torch.capture(net, x, loss=torch.sum)
    for seed in range(2):
        devices = fakes(2)
        cluster, placement = random_placement(captured, devices, seed)
        placed = emplace.torch.place(captured, devices=devices, cluster=cluster, placement=placement)
        with pytest.raises(emplace.Error, match=r"eval\(\): the forward pass could not be captured: .*looks at a tensor's"):
            placed.eval()(x)


def test_parameters_that_were_frozen_since_are_refused():
    net, x = nn.Linear(4, 4), torch.randn(3, 4)
    placed = emplace.torch.place(net, x, loss=torch.sum, devices=["cpu"], placer="single")
    net.bias.requires_grad_(False)
    with pytest.raises(emplace.Error, match="'bias': requires_grad is False; expected True, as captured: place the"):
        placed(x)
    placed.eval()(x)


class Branching(nn.Module):
    """Of which only the training step is the same for every input."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        if self.training or x.sum() > 0:
            return self.linear(x)
        return x


def test_steps_run_where_the_forward_pass_cannot_be_captured():
    placed = emplace.torch.place(Branching(), torch.randn(3, 4), loss=torch.sum, devices=["cpu"], placer="single")
    placed(torch.randn(3, 4))
    placed.eval()
    with pytest.raises(emplace.Error, match=r"eval\(\): the forward pass could not be captured: .*looks at a tensor's"):
        placed(torch.randn(3, 4))
    placed.train()(torch.randn(3, 4))


def test_gradients_add_up_without_an_optimizer():
    model, x, y = make("lstm")
    _, gradients = eager(model, x, y)
    placed = emplace.torch.place(model, x, loss=cross_entropy, targets=y, devices=["cpu"])
    placed(x, y)
    placed(x, y)
    for key, parameter in model.named_parameters():
        assert same("lstm", parameter.grad, gradients[key] + gradients[key])


def test_gradients_from_before_a_step_are_not_applied():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x)

    net, x = Net(), torch.ones(1, 2)
    placed = emplace.torch.place(net, x, loss=torch.sum, devices=["cpu"],
                                 optimizer=torch.optim.SGD(net.parameters(), lr=0.1))
    before = {key: value.clone() for key, value in net.state_dict().items()}
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    placed(x)
    assert torch.equal(net.unused.weight, before["unused.weight"])
    assert torch.allclose(net.used.weight, before["used.weight"] - 0.1)


def test_what_was_kept_by_the_optimizer_moves_along():
    model, x, y = make("lstm")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    devices = fakes(2)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y, optimizer=optimizer)
    cluster, placement = random_placement(captured, devices, seed=1)
    emplace.torch.place(captured, devices=devices, cluster=cluster, placement=placement)(x, y)
    for parameter in model.parameters():
        assert optimizer.state[parameter]["momentum_buffer"].place == parameter.place


def test_counts_of_steps_move_where_the_device_counts():
    net, x = nn.Linear(4, 4), torch.randn(2, 4)
    optimizer = torch.optim.Adam(net.parameters())
    captured = emplace.torch.capture(net, x, loss=torch.sum, optimizer=optimizer)
    net(x).sum().backward()
    optimizer.step()
    optimizer.param_groups[0]["capturable"] = True
    emplace.torch.place(captured, devices=fakes(1), cluster="1xp100", placer="single")
    for parameter in net.parameters():
        assert optimizer.state[parameter]["step"].place == parameter.place


GIB = 2**30


class Gpu(FakeDevice):
    """With the memory of a GPU that has 1 GiB free of 10, 2 in PyTorch's cache, and 4 used."""

    def __init__(self, name):
        super().__init__(name, memory=None)
        self.torch_device = torch.device("cuda", 0)


def test_what_a_model_has_on_a_gpu_does_not_count_against_it(monkeypatch):
    asked = {"mem_get_info": (GIB, 10 * GIB), "memory_reserved": 6 * GIB, "memory_allocated": 4 * GIB}
    for name, value in asked.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    gpu, other, net = Gpu("test:0"), Gpu("test:1"), nn.Linear(1024, 1024)
    assert gpu.memory == 3 * GIB
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(torch.ones(1, 1024)).sum().backward()
    optimizer.step()
    captured = emplace.torch.capture(net, torch.ones(1, 1024), loss=torch.sum, optimizer=optimizer)
    for state in captured.trace.parameters:
        move_state(net, state, gpu, optimizer)
    own = 2 * 4 * (1024 * 1024 + 1024)
    cluster = cluster_of([gpu, other], held=captured.held())
    assert [device.memory for device in cluster.devices] == [3 * GIB + own, 3 * GIB]
    assert cluster_of([FakeDevice("test:0", memory=5000)], held=captured.held()).devices[0].memory == 5000


def test_gpus_that_nobody_knows_are_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert emplace.torch.Device("cuda:0").kind == "h200"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Acme 9")
    assert emplace.torch.Device("cuda:0", kind="v100").kind == "v100"
    assert emplace.torch.Device("cuda:0").kind == "a100"

    class Acme(FakeDevice):
        """Whose kind is not known; its values are on the CPU."""

        def __init__(self, **options):
            emplace.torch.Device.__init__(self, "cuda:0", memory=GIB, **options)
            self.name, self.ops, self.torch_device = "test:0", 0, torch.device("cpu")

    captured = emplace.torch.capture(nn.Linear(4, 4), torch.randn(2, 4))
    with pytest.warns(UserWarning, match="test:0: its name, 'Acme 9', has no kind that emplace knows") as warned:
        emplace.torch.place(captured, devices=[Acme()], placer="single")
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        emplace.torch.place(captured, devices=[Acme(kind="v100")], placer="single")
        emplace.torch.place(captured, devices=[Acme()], placer="single", cluster="1xp100")
        emplace.torch.place(captured, devices=[Acme()], placer="single", profile=True)


class Counting(FakeDevice):
    """Leaves numbers with the host, as fused attention does with the seeds of its dropout."""

    def call(self, target, args, kwargs):
        result = super().call(target, args, kwargs)
        return bare(result) if result.dim() == 0 else result


def test_numbers_that_an_op_leaves_with_the_host_are_read_there():
    class Net(nn.Module):
        def forward(self, x):
            return x.exp() * x.sum()

    devices, x = [Counting("test:0"), Counting("test:1")], torch.randn(3)
    captured = emplace.torch.capture(Net(), x)
    placed = emplace.torch.place(captured, devices=devices, cluster="2xp100", placement={
        "x": "test:0", "exp": "test:1", "sum": "test:0", "mul": "test:1"})
    assert torch.equal(bare(placed(x)), Net()(x))
    assert placed.program.copies == 1


def refused(match, *args, **kwargs):
    with pytest.raises(emplace.Error, match=match):
        emplace.torch.place(*args, **kwargs)


def test_mistakes_are_explained():
    net, x = nn.Linear(64, 64), torch.randn(3, 64)
    refused("device 'gpu7': expected one of PyTorch's, such as cpu or cuda:0", net, x,
            devices=["gpu7"])
    refused("PyTorch sees", net, x, devices=["cuda:99"])
    refused("'cpu' occurs twice", net, x, devices=["cpu", "cpu"])
    refused("devices: is empty", net, x, devices=[])
    refused("expected what the model is called with", net, devices=["cpu"])
    refused("has 4 devices; expected 2, one for each", net, x, devices=fakes(2), cluster="4xp100")
    refused("is placed on 'mars'", net, x, devices=["cpu"],
            placement={name: "mars" for name in emplace.torch.capture(net, x).graph.op_names})
    refused("fit", net, x, devices=fakes(2, memory=4000))

    refused("devices: expected a list of names or Device objects.*, not NoneType", net, x, devices=None)
    refused("devices: expected a list of names or Device objects.*, not int", net, x, devices=3)
    for memory in ("3 apples", -5, "1.2.3GB", True):
        with pytest.raises(emplace.Error, match=f"memory '{memory}': expected bytes, or a size such as"):
            emplace.torch.Device("cpu", memory=memory)
    with pytest.raises(emplace.Error, match="kind 'gpu': expected one of .*h200"):
        emplace.torch.Device("cpu", kind="gpu")
    assert emplace.torch.Device("cpu", memory="1.5GiB").memory == 3 * 2**29
    assert emplace.torch.Device("cpu", memory=2**62 + 1).memory == 2**62 + 1
    captured = emplace.torch.capture(net, x)
    refused("is captured already", captured, x, devices=["cpu"])
    for given in ({"targets": torch.zeros(3, 64)}, {"targets": (x,)}, {"loss": torch.sum}, {"name": "net"}):
        refused("is captured already", captured, devices=["cpu"], **given)
    refused("use_cpu: is what devices say; expected 'cpu' among them", net, x, devices=["cpu"], use_cpu=True)
    refused("'weight': is on meta and has no values; expected a model on a device", nn.Linear(4, 4, device="meta"),
            torch.zeros(3, 4, device="meta"), devices=["cpu"])
    placed = emplace.torch.place(captured, devices=["cpu"])
    with pytest.raises(emplace.Error, match="'input': is float32 of shape \\[5, 64\\]; expected"):
        placed(torch.randn(5, 64))


def test_models_that_changed_since_are_refused():
    net, x = nn.Linear(4, 4), torch.randn(3, 4)
    placed = emplace.torch.place(net, x, devices=["cpu"], placer="single")
    net.double()
    with pytest.raises(emplace.Error, match="'weight': is float64 of .*; expected float32 of shape .*, as captured"):
        placed(x)
    net.float().weight = nn.Parameter(torch.zeros(6, 4))
    with pytest.raises(emplace.Error, match=r"'weight': is float32 of shape \[6, 4\]; expected float32 of"):
        placed(x)
    net = nn.Linear(4, 4)
    placed = emplace.torch.place(net, x, devices=fakes(1), cluster="1xp100", placer="single")
    placed.gather(FakeDevice("test:1"))
    with pytest.raises(emplace.Error, match="'weight': is not on test:0 any more; expected .*: place the model again"):
        placed(x)


def test_gradients_do_not_share_memory():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))

        def forward(self, x):
            return ((self.one + self.other) * x).sum()

    net, x = Sum(), torch.randn(4)
    emplace.torch.place(net, x, loss=lambda output: output, devices=["cpu"], placer="single")(x)
    assert torch.equal(net.one.grad, x) and torch.equal(net.other.grad, x)
    net.one.grad.zero_()
    assert torch.equal(net.other.grad, x)
    assert all(p.grad.stride() == p.stride() for p in net.parameters())


def test_buffers_that_were_replaced_after_the_capture_are_updated():
    net, x = nn.BatchNorm1d(4), torch.randn(8, 4)
    reference = copy.deepcopy(net)
    captured = emplace.torch.capture(net, x)
    net.double()
    net.float()
    placed = emplace.torch.place(captured, devices=["cpu"])
    assert torch.equal(placed(x), reference(x))
    assert torch.equal(net.running_mean, reference.running_mean)
    net.running_mean = torch.zeros(4)
    placed(x)
    assert torch.equal(net.running_mean, reference.running_mean)


class Delay(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cur", torch.zeros(2))
        self.register_buffer("prev", torch.zeros(2))
        self.register_buffer("fixed", torch.ones(2))

    def forward(self, x):
        old = self.cur
        self.prev = self.cur
        self.cur = x * 1
        return old, old[:1], self.fixed


@pytest.mark.parametrize("devices", [["cpu"], fakes(2)])
def test_old_values_of_buffers_are_not_written_over(devices):
    model, reference = Delay(), Delay()
    placed = emplace.torch.place(model, torch.zeros(2), devices=devices, seconds=0.2)
    for step in range(1, 4):
        x = torch.full((2,), float(step))
        ours, theirs = placed(x), reference(x)
        assert all(torch.equal(bare(one), other) for one, other in zip(ours, theirs))
        for name, value in reference.named_buffers():
            assert torch.equal(bare(model.get_buffer(name)), value), name


def test_results_show_themselves():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(3, 4)
    profile = emplace.torch.profile(emplace.torch.capture(net, x), devices=["cpu"])
    device_map = emplace.torch.device_map(net, x, devices=["cpu"], seconds=0.2)
    placed = emplace.torch.place(net, x, devices=["cpu"], placer="single")
    for result, shown, keys in [
            (profile, "<td>cpu</td>", ["name", "steps", "links"]),
            (device_map, "<td>cpu</td>", ["device_of", "main_device", "seconds", "sent_bytes"]),
            (placed, "Placed Sequential on cpu", ["name", "device_of", "answer"])]:
        assert shown in result._repr_html_()
        assert list(json.loads(json.dumps(result.to_dict()))) == keys


def test_memory_stays_flat_over_many_placements():
    net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
    x = torch.randn(8, 16)

    def once():
        emplace.torch.place(net, x, loss=torch.sum, devices=["cpu"], placer="single")(x)
        net.zero_grad(set_to_none=True)

    for _ in range(10):
        once()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(40):
        once()
    gc.collect()
    assert len(gc.get_objects()) - before < 1200  # one has hundreds
