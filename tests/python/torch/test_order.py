"""In which order a placed step gives ops to devices, and from which threads."""
import contextlib
import copy
import gc
import random
import sys
import threading
import weakref

import pytest
import torch
from torch import nn

import emplace
import emplace.torch
from emplace.torch._operators import operator_name
from emplace.torch._order import issue_order
from emplace.torch._rewrite import is_random
from fake_device import FakeDevice, bare
from models import cross_entropy, eager, make, same


class Noting(FakeDevice):
    """Notes (device, operator, thread) of all of them in one list."""

    def __init__(self, name, notes, host=False):
        super().__init__(name)
        self.notes, self.host = notes, host

    @property
    def is_cpu(self):
        return self.host

    def call(self, target, args, kwargs):
        self.notes.append((self.name, operator_name(target), threading.current_thread()))
        return super().call(target, args, kwargs)


@pytest.mark.parametrize("name", ["gpt", "encoder", "gru"])
def test_every_order_of_starts_is_one_of_the_graph(name):
    model, x, y = make(name)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y)
    calls = [node for node in captured.trace.nodes if node.op == "call_function"]
    rng = random.Random(1)
    order = issue_order(calls, {call: rng.randrange(100) for call in calls})
    position = {call: i for i, call in enumerate(order)}
    assert len(order) == len(calls) == len(position)
    assert all(position[read] < position[call] for call in calls for read in call.all_input_nodes
               if read in position)
    draws = [call for call in calls if is_random(call)]
    assert sorted(draws, key=position.get) == draws
    assert issue_order(calls, dict.fromkeys(calls, 0)) == calls


def test_ops_are_issued_as_they_start_in_the_simulated_step():
    class Net(nn.Module):
        def forward(self, x):
            y = x.exp().exp().exp()
            return y, x.sin().sin().sin()

    notes, x = [], torch.randn(1 << 12)
    devices = [Noting(f"test:{i}", notes) for i in range(2)]
    captured = emplace.torch.capture(Net(), x)
    placement = {name: f"test:{int(name.startswith('sin'))}" for name in captured.graph.op_names}
    placed = emplace.torch.place(captured, devices=devices, cluster="2xp100", placement=placement)
    placed(x)
    starts = dict(zip(captured.graph.op_names, placed.answer.timeline.start.tolist()))
    names = {"exp": iter(["exp", "exp_2", "exp_3"]), "sin": iter(["sin", "sin_2", "sin_3"])}
    issued = [next(names[kind]) for _, kind, _ in notes]
    assert sorted(issued) == ["exp", "exp_2", "exp_3", "sin", "sin_2", "sin_3"]
    assert [starts[name] for name in issued] == sorted(starts[name] for name in issued)
    assert issued.index("sin") < issued.index("exp_3")  # not as captured


@pytest.mark.parametrize("name", ["gpt", "gru", "lstm", "resnet18"])
def test_a_host_beside_an_accelerator_trains_bit_for_bit_in_a_thread_of_its_own(name):
    model, x, y = make(name)
    loss, gradients = eager(model, x, y)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y)
    problem = emplace.compile(captured.graph, "3xp100")
    for seed in range(2):
        notes, rng = [], random.Random(seed)
        devices = [Noting("gpu:0", notes), Noting("host", notes, host=True), Noting("gpu:1", notes)]
        chosen = [rng.choice(devices).name for _ in range(max(problem.groups) + 1)]
        placed = emplace.torch.place(
            captured, devices=devices, cluster="3xp100", placement={
                op: chosen[group] for op, group in zip(captured.graph.op_names, problem.groups)})
        for parameter in model.parameters():
            parameter.grad = None
        assert same(name, loss, bare(placed(x, y)))
        for key, parameter in model.named_parameters():
            assert same(name, gradients[key], bare(parameter.grad)), key
        threads = {name: {thread for other, _, thread in notes if other == name}
                   for name in ("gpu:0", "host", "gpu:1")}
        assert threads["gpu:0"] == threads["gpu:1"] == {threading.current_thread()}
        assert len(threads["host"]) == 1 and threads["host"] != threads["gpu:0"]
        assert placed.program.copies > 0
        placed.gather()


class Waiting(Noting):
    """A host whose ops wait until the other device has been given all of its own."""

    def call(self, target, args, kwargs):
        if operator_name(target) == "exp":
            assert self.go.wait(60)
        return super().call(target, args, kwargs)


class Net(nn.Module):
    def forward(self, x):
        slow = x.exp()
        quick = x
        for _ in range(5):
            quick = quick.sin()
        return slow + quick


def placed_beside(host, gpu, x):
    captured = emplace.torch.capture(Net(), x)
    placement = {name: gpu.name if name.startswith("sin") else host.name
                 for name in captured.graph.op_names}
    return emplace.torch.place(captured, devices=[gpu, host], cluster="2xp100", placement=placement)


def test_the_hosts_ops_do_not_hold_up_the_accelerator():
    notes, x = [], torch.randn(5)

    class Going(Noting):
        def call(self, target, args, kwargs):
            result = super().call(target, args, kwargs)
            if self.ops == 5:
                host.go.set()
            return result

    host, gpu = Waiting("host", notes, host=True), Going("gpu:0", notes)
    host.go = threading.Event()
    result = placed_beside(host, gpu, x)(x)
    assert torch.equal(bare(result), Net()(x))
    assert [kind for _, kind, _ in notes] == ["sin"] * 5 + ["exp", "add"]


@pytest.mark.parametrize("failing", ["gpu:0", "host"])
def test_a_failure_of_one_thread_ends_the_step(failing):
    class Failing(Noting):
        def call(self, target, args, kwargs):
            if self.name == failing and broken:
                raise RuntimeError(f"{self.name} is broken")
            return super().call(target, args, kwargs)

    x, broken = torch.randn(5), True
    placed = placed_beside(Failing("host", [], host=True), Failing("gpu:0", []), x)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"{failing} is broken"):
            placed(x)
    broken = False
    assert torch.equal(bare(placed(x)), Net()(x))


def test_a_steps_tensors_are_dropped_after_it():
    class Weak(Noting):
        def call(self, target, args, kwargs):
            result = super().call(target, args, kwargs)
            made.append(weakref.ref(result))
            return result

    made, x = [], torch.randn(5)
    placed = placed_beside(Weak("host", [], host=True), Weak("gpu:0", []), x)
    placed(x)
    gc.collect()
    assert len(made) == 7 and all(one() is None for one in made)


@pytest.mark.parametrize("lanes", [1, 2])
def test_several_threads_may_be_in_a_forward_pass_each(lanes):
    net = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(8, 8), nn.ReLU())])
    captured = emplace.torch.capture(net, torch.zeros(4, 8))
    devices = [FakeDevice("gpu:0"), Noting("host", [], host=lanes == 2)]
    placement = {name: devices[name.split(".")[0] in "2468"].name for name in captured.graph.op_names}
    inputs = [torch.randn(4, 8) for _ in range(4)]
    with torch.no_grad():
        expected = [net(x) for x in inputs]
    placed = emplace.torch.place(captured, devices=devices, cluster="2xp100", placement=placement)
    assert len(placed.program.lanes) == lanes
    wrong = at_once(lambda i: [step for step in range(30)
                               if not torch.equal(bare(placed(inputs[i])), expected[i])], len(inputs))
    assert wrong == [[]] * len(inputs)


def test_training_steps_from_several_threads_follow_each_other():
    net, x = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8)), torch.randn(4, 8)
    reference = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    placed = emplace.torch.place(net, x, loss=torch.sum, optimizer=optimizer, seconds=0.1,
                                 devices=[FakeDevice("test:0"), FakeDevice("test:1")])
    at_once(lambda i: [placed(x) for _ in range(10)], 3)
    alone = emplace.torch.place(reference, x, loss=torch.sum, devices=["cpu"], placer="single",
                                optimizer=torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9))
    for _ in range(30):
        alone(x)
    for key, value in reference.state_dict().items():
        assert torch.equal(value, bare(net.state_dict()[key])), key


def at_once(work, count):
    """The results of `work` with each number, each in a thread that is interrupted all the time."""
    results = [None] * count

    def one(i):
        results[i] = work(i)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(count)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    return results


def test_the_hosts_thread_has_the_callers_streams():
    class Streaming(Noting):
        @contextlib.contextmanager
        def _entered(self):
            entered.append((self.name, threading.current_thread()))
            yield

        def stream(self):
            asked.append(threading.current_thread())
            return self._entered()

    asked, entered, notes, x = [], [], [], torch.randn(5)
    placed = placed_beside(Streaming("host", notes, host=True), Streaming("gpu:0", notes), x)
    placed(x)
    (thread,) = {thread for name, _, thread in notes if name == "host"}
    assert asked == [threading.current_thread()] * 2
    assert sorted(entered) == [("gpu:0", thread), ("host", thread)]


def test_values_that_a_device_sends_are_waited_for():
    class Sending(Noting):
        def send_to_host(self, tensor):
            sent.append(bare(tensor))
            return FakeDevice.take(host, tensor), lambda: waited.append(threading.current_thread())

    sent, waited, x = [], [], torch.randn(5)
    host = Noting("host", [], host=True)
    placed = placed_beside(host, Sending("gpu:0", []), x)
    assert torch.equal(bare(placed(x)), Net()(x))
    assert len(sent) == len(waited) == 1 and waited[0] is not threading.current_thread()
    assert placed.program.copies == 2 and placed.program.copied_bytes == 2 * 5 * 4  # x and the sine


def test_two_threads_place_at_once():
    models = [make("gpt"), make("lstm")]
    expected, found = [eager(*model)[0] for model in models], {}

    def work(number):
        model, x, y = models[number]
        devices = [FakeDevice(f"test:{i}") for i in range(2)]
        placed = emplace.torch.place(model, x, loss=cross_entropy, targets=y, devices=devices, seconds=1)
        found[number] = bare(placed(x, y))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[number], loss) for number, loss in enumerate(expected))


@pytest.mark.parametrize("training", [True, False])
def test_passes_of_several_threads_count_each(training):
    class Counts(nn.Linear):
        def __init__(self):
            super().__init__(100, 100)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            if self.training is training:
                self.calls.add_(1)
            return super().forward(super().forward(x))

    net, x = Counts(), torch.randn(100, 100)
    captured = emplace.torch.capture(net, x)
    placed = emplace.torch.place(captured, devices=["cpu"], placer="single").train(training)
    threads = [threading.Thread(target=lambda: [placed(x) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert net.calls == 200
