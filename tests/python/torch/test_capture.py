"""What is captured is what PyTorch runs."""
import gc
import gzip
import json
import os
import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import emplace
import emplace.torch
from emplace.torch import _compat
from emplace.torch._errors import is_users
from models import MODELS, Control, cross_entropy, eager, make, same
from refusals import refused


def capture(model_name, **options):
    model, x, y = make(model_name)
    return model, x, y, emplace.torch.capture(model, x, loss=cross_entropy, targets=y, **options)


@pytest.mark.parametrize("name", MODELS)
def test_a_replayed_training_step_is_eager_bit_for_bit(name):
    model, x, y, captured = capture(name)
    loss, gradients = eager(model, x, y)
    before = {key: value.clone() for key, value in model.named_buffers()}
    torch.manual_seed(7)
    replayed, their = captured.run(x, y)
    assert all(torch.equal(before[key], value) for key, value in model.named_buffers())
    assert same(name, loss, replayed)
    assert set(gradients) == set(their)
    assert [key for key in gradients if not same(name, gradients[key], their[key])] == []
    assert captured.graph.training
    assert captured.graph.parameters == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_a_replayed_forward_pass_is_eager_bit_for_bit(name):
    model, x, _ = make(name)
    model.eval()
    captured = emplace.torch.capture(model, x)
    other = torch.randn_like(x) if x.is_floating_point() else (x + 1) % 100
    with torch.no_grad():
        assert same(name, model(other), captured.run(other))
    assert not captured.graph.training


def test_operators_with_a_kernel_of_their_own_stay_whole():
    _, _, _, captured = capture("activations")
    types = [op["type"] for op in captured.to_dict()["ops"]]
    assert types.count("silu_backward") == types.count("mish_backward") == 1
    assert "sigmoid" not in types and "tanh" not in types


@pytest.mark.parametrize("name", ["vit", "gpt", "encoder", "lstm"])
def test_portable_captures_are_eager_but_for_the_last_bits(name):
    model, x, y = make(name)
    model.eval()  # in some versions fused attention draws its dropout in another order
    loss, gradients = eager(model, x, y)
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y, portable=True)
    assert not any("scaled_dot_product" in op["type"] or "mkldnn" in op["type"]
                   for op in captured.to_dict()["ops"])
    replayed, theirs = captured.run(x, y)
    torch.testing.assert_close(replayed, loss, rtol=1e-5, atol=1e-6)
    for key, gradient in gradients.items():
        torch.testing.assert_close(theirs[key], gradient, rtol=1e-3, atol=1e-5)


def test_portable_captures_leave_out_libraries_of_one_device_and_turn_them_on_again():
    libraries = torch.backends.mkldnn, torch.backends.cudnn

    class Net(nn.Module):
        def forward(self, x):
            seen.append([library.enabled for library in libraries])
            return x + 1

    seen, before = [], [library.enabled for library in libraries]
    emplace.torch.capture(Net(), torch.ones(2), portable=True)
    assert seen == [[False, False]]
    assert [library.enabled for library in libraries] == before


def test_recurrent_networks_are_captured_without_cudnn():
    class Net(nn.LSTM):
        def forward(self, x):
            seen.append(torch.backends.cudnn.enabled)
            return super().forward(x)[0]

    seen, before = [], torch.backends.cudnn.enabled
    emplace.torch.capture(Net(3, 4), torch.randn(2, 1, 3))
    assert seen == [False] and torch.backends.cudnn.enabled == before


def test_capturing_changes_nothing():
    model, x, y = make("resnet18")
    optimizer = torch.optim.Adam(model.parameters())
    before = {key: value.clone() for key, value in model.state_dict().items()}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    emplace.torch.capture(model, x, loss=cross_entropy, targets=y, optimizer=optimizer)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert not optimizer.state
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not model._forward_hooks and not model._forward_pre_hooks


def test_ops_have_modules_phases_and_attributes():
    _, _, _, captured = capture("resnet18")
    ops = {op["name"]: op for op in captured.to_dict()["ops"]}
    convolution = ops["layer2.0.conv1.convolution"]
    assert convolution["module"] == "layer2.0.conv1"
    assert convolution["attributes"] == {"strides": [2, 2], "pads": [1, 1, 1, 1],
                                         "dilations": [1, 1], "group": 1}
    # 2 images of 128 x 8 x 8, each element from 64 x 3 x 3 products.
    assert convolution["flops"] == 2 * (2 * 128 * 8 * 8) * (64 * 3 * 3)
    backward = ops["layer2.0.conv1.convolution_backward"]
    assert (backward["module"], backward["phase"]) == ("layer2.0.conv1", "backward")
    assert backward["flops"] == 2 * convolution["flops"]
    computing = [op for op in ops.values() if op.get("phase") in ("forward", "backward")]
    in_modules = [op for op in computing if op.get("module")]
    assert len(in_modules) > 0.85 * len(computing)
    assert all(op.get("module") for op in computing if op["phase"] == "forward"
               and "conv" in op["type"])


def test_shapes_and_dtypes_are_those_of_the_tensors():
    model, x, y, captured = capture("gpt")
    graph = captured.graph
    number = graph.op_names.index("embed.weight")
    tensor = graph.tensor(graph.op(number).outputs[0])
    assert tensor.shape == [100, 32] and tensor.dtype == "float32"
    tokens = graph.tensor(graph.op(graph.op_names.index("tokens")).outputs[0])
    assert tokens.shape == [2, 8] and tokens.dtype == "int64"


def test_tied_weights_are_there_once_and_get_both_gradients():
    model, x, y, captured = capture("gpt")
    names = [op["name"] for op in captured.to_dict()["ops"] if op["type"] == "parameter"]
    assert "embed.weight" in names and "head.weight" not in names
    reads = [op for op in captured.graph.op_names if op.startswith("embed.weight.")]
    assert reads == ["embed.weight.accumulate_grad"]


@pytest.mark.parametrize("make_optimizer, numbers, kind", [
    (lambda p: torch.optim.SGD(p, lr=0.1), 0, "sgd_update"),
    (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), 1, "sgd_update"),
    (lambda p: torch.optim.Adam(p), 2, "adam_update"),
    (lambda p: torch.optim.AdamW(p, amsgrad=True), 3, "adam_w_update"),
    (lambda p: torch.optim.RMSprop(p, centered=True), 2, "rmsprop_update"),
])
def test_optimizers_are_part_of_the_step(make_optimizer, numbers, kind):
    model, x, y = make("lstm")
    captured = emplace.torch.capture(model, x, loss=cross_entropy, targets=y,
                                     optimizer=make_optimizer(model.parameters()))
    updates = {op["name"]: op for op in captured.to_dict()["ops"] if op.get("phase") == "update"}
    assert len(updates) == len(list(model.parameters()))
    update = updates[f"lstm.weight_ih_l0.{kind}"]
    assert update.get("persistent_bytes", 0) == numbers * 4 * model.lstm.weight_ih_l0.numel()


def test_named_inputs_and_structured_outputs():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(4, 4)

        def forward(self, x, scale=None, deep=None):
            y = self.one(x) * scale
            return {"y": y, "more": (y + deep[0], None)}

    net = Net()
    inputs = {"x": torch.randn(2, 4), "scale": torch.randn(4), "deep": [torch.randn(4)]}
    captured = emplace.torch.capture(net, inputs)
    assert captured.trace.inputs == ["x", "scale", "deep"]
    ours, theirs = captured.run(**inputs), net(**inputs)
    assert torch.equal(ours["y"], theirs["y"]) and ours["more"][1] is None
    assert torch.equal(ours["more"][0], theirs["more"][0])


@pytest.fixture(scope="module")
def halves():
    """An operator that returns a tensor and a list of tensors, as cuDNN's recurrent networks do."""
    library = torch.library.Library("emplace_test", "DEF")
    library.define("halves(Tensor x) -> (Tensor, Tensor[])")
    library.impl("halves", lambda x: (x.sum(0), [part.clone() for part in x.chunk(2)]),
                 "CompositeExplicitAutograd")
    yield torch.ops.emplace_test.halves
    del library


def test_lists_among_the_results_of_an_op(halves):
    class Net(nn.Module):
        def forward(self, x):
            total, (upper, lower) = halves(x)
            return total - lower * 2, upper

    x = torch.randn(4, 3)
    captured = emplace.torch.capture(Net(), x)
    ops = {op["type"]: op for op in captured.to_dict()["ops"]}
    assert len(ops["halves"]["outputs"]) == 3
    assert ops["mul"]["inputs"] == ops["halves"]["outputs"][2:]
    assert ops["sub"]["inputs"][0] == ops["halves"]["outputs"][0]
    for run in (captured.run, emplace.torch.place(captured, devices=["cpu"])):
        for ours, theirs in zip(run(x), Net()(x)):
            assert torch.equal(ours, theirs)


def test_views_and_writes_into_tensors():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(6, 6)
            self.register_buffer("seen", torch.zeros(6))

        def forward(self, x):
            y = self.one(x).clone()
            y[:, 2:4] = 0
            y[0].add_(1)
            self.seen += x.mean(0)
            z = y.t().contiguous().view(3, -1)
            z.masked_fill_(z < 0, float("-inf"))
            return (z.exp() + torch.arange(z.shape[1])).sum() + self.seen.sum()

    net, x = Net(), torch.randn(4, 6)
    captured = emplace.torch.capture(net, x, loss=lambda output: output)
    before = net.seen.clone()
    loss, gradients = captured.run(x)
    assert torch.equal(net.seen, before)
    eager_loss = net(x)
    assert torch.equal(loss, eager_loss)
    expected = torch.autograd.grad(eager_loss, [net.one.weight, net.one.bias])
    assert torch.equal(gradients["one.weight"], expected[0])
    assert torch.equal(gradients["one.bias"], expected[1])
    assert captured.graph.num_ops == len(captured.to_dict()["ops"])  # infinities are read back


def test_buffers_that_are_assigned_anew():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(4, 4)
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            return self.one(x - self.mean).sum()

    net, x = Net(), torch.randn(3, 4)
    before = net.mean
    captured = emplace.torch.capture(net, x, loss=lambda output: output)
    assert net.mean is before
    placed = emplace.torch.place(captured, devices=["cpu"], placer="single")
    loss = placed(x, )
    expected = net.mean.clone()
    net.mean = before.clone().zero_()
    assert torch.equal(net(x).detach(), loss) and torch.equal(net.mean, expected)


def test_a_norm_that_is_used_twice_updates_its_statistics_twice():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x):
            return self.norm(self.norm(x) + 1).square().sum()

    net, x = Net(), torch.randn(8, 4)
    placed = emplace.torch.place(net, x, loss=lambda output: output, devices=["cpu"],
                                 placer="single")
    loss = placed(x)
    ours = {key: value.clone() for key, value in net.named_buffers()}
    reference = Net()
    assert torch.equal(reference(x).detach(), loss)
    assert all(torch.equal(value, ours[key]) for key, value in reference.named_buffers())
    assert int(ours["norm.num_batches_tracked"]) == 2


def test_saved_graphs_are_read_back(tmp_path):
    _, _, _, captured = capture("lstm", name="my-lstm")
    for name in ("graph.json", "graph.json.gz"):
        captured.save(tmp_path / name)
        graph = emplace.read_model(str(tmp_path / name)).graph
        assert graph.name == "my-lstm" and graph.op_names == captured.graph.op_names
    assert json.load(gzip.open(tmp_path / "graph.json.gz")) == captured.to_dict()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.json", "graph.json.gz"]
    with pytest.raises(emplace.Error, match="nowhere.*cannot be written"):
        captured.save(tmp_path / "nowhere" / "graph.json")


def test_control_flow_by_values_is_refused_with_its_line():
    with pytest.raises(emplace.Error) as caught:
        emplace.torch.capture(Control(), torch.randn(2, 8))
    message = str(caught.value)
    assert "models.py:" in message and "this line is looked for" in message
    assert "expected a step whose ops are the same for every input" in message


@pytest.mark.parametrize("function", [
    lambda x: x[x > 0].sum(), lambda x: x.nonzero().sum() + x.sum(),
    lambda x: torch.masked_select(x, x > 0).sum(), lambda x: torch.unique(x, dim=0).sum(),
    lambda x: x * (x > 0).nonzero().size(0), lambda x: x * len(x[x > 0])])
def test_shapes_by_values_are_refused(function):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(4, 4)

        def forward(self, x):
            return function(self.one(x))

    with pytest.raises(emplace.Error, match="test_capture.py:.*depends on values"):
        emplace.torch.capture(Net(), torch.randn(3, 4))


def test_packed_sequences_are_refused():
    class Packed(nn.Module):
        def forward(self, x, lengths):
            return nn.utils.rnn.pack_padded_sequence(x, lengths).data * 2

    refused("'_pack_padded_sequence' makes a tensor whose shape depends", Packed(),
            (torch.randn(6, 2, 4), torch.tensor([5, 3])))


def test_casts_of_a_weight_that_is_used_twice_are_shared():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(8, 8)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.one(torch.relu(self.one(x)))

    net, x = Net(), torch.randn(5, 8)
    captured = emplace.torch.capture(net, x, loss=lambda output: output.float().sum())
    net(x).float().sum().backward()
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    net.zero_grad()
    placed = emplace.torch.place(captured, devices=["cpu"])
    placed(x)
    for parameter, gradient in zip(net.parameters(), expected):
        assert torch.equal(parameter.grad, gradient)


def test_repeats_of_a_known_size_are_captured():
    class Net(nn.Module):
        def forward(self, x, repeats):
            return x.repeat_interleave(repeats, 0, output_size=3)

    x, repeats = torch.arange(2.0), torch.tensor([1, 2])
    assert emplace.torch.capture(Net(), (x, repeats)).run(x, repeats.flip(0)).tolist() == [0, 0, 1]


@pytest.mark.parametrize("look", [
    lambda x: x.tolist()[0][0], lambda x: float(x.numpy()[0, 0]),
    lambda x: float(np.asarray(x)[0, 0]), lambda x: x[0, 0].item(),
    lambda x: torch.tensor([x[0, 0], 1]), lambda x: torch.as_tensor([[x[0, 0]]]),
    lambda x: x.new_tensor(data=[x[0, 0]]), lambda x: torch.tensor_split(x, x[0].long())[0],
    lambda x: x.tensor_split(x[0].long())[0]])
def test_contents_as_constants_are_refused_with_their_line(look):
    class Net(nn.Module):
        def forward(self, x):
            return x * look(x)

    refused("test_capture.py:.*lambda x.*looks at a tensor's contents", Net(), torch.ones(2, 2))
    assert torch.ones(2).tolist() == [1, 1] and "tolist" not in torch.Tensor.__dict__
    assert np.asarray(torch.ones(2)).sum() == torch.ones(2).numpy().sum() == 2


def test_other_threads_see_contents_meanwhile():
    seen = []

    class Net(nn.Module):
        def forward(self, x):
            other = threading.Thread(target=lambda: seen.append(torch.ones(2).tolist()))
            other.start()
            other.join()
            return x + 1

    emplace.torch.capture(Net(), torch.ones(2))
    assert seen == [[1, 1]]


class Writing(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.write = write

    def forward(self, x):
        self.write(self.inner.weight)
        return self.inner(x).sum()


def halve(weight):
    with torch.no_grad():
        weight.mul_(0.5)


def halve_row(weight):
    with torch.no_grad():
        weight.t()[0].mul_(0.5)


def halve_data(weight):
    weight.data.mul_(0.5)


@pytest.mark.parametrize("write", [halve, halve_row, halve_data])
@pytest.mark.parametrize("options", [{}, {"loss": lambda output: output}])
def test_forwards_that_write_into_parameters_are_refused(write, options):
    net = Writing(write)
    before = net.inner.weight.detach().clone()
    refused("forward writes into the parameter 'inner.weight'", net, torch.randn(3, 4), **options)
    assert torch.equal(net.inner.weight, before)


def test_forwards_that_assign_parameters_are_refused():
    class Net(nn.Linear):
        def forward(self, x):
            self.weight = nn.Parameter(self.weight * 0.5)
            return super().forward(x)

    net = Net(4, 4)
    weight, before = net.weight, net.weight.detach().clone()
    refused("forward writes into the parameter 'weight'", net, torch.randn(3, 4))
    assert net.weight is weight and torch.equal(weight, before)


def test_embeddings_with_a_largest_norm_are_refused():
    net = nn.Embedding(5, 4, max_norm=0.1)
    before = net.weight.detach().clone()
    refused("forward writes into the parameter 'weight'", net, torch.tensor([1, 2]))
    assert torch.equal(net.weight, before)


def test_parameters_that_are_not_numbers_are_no_writes():
    net = nn.Linear(2, 2)
    net.weight.data[0, 0] = float("nan")
    emplace.torch.capture(net, torch.ones(1, 2))


def test_checkpointing_is_captured_unless_it_draws_twice():
    class Net(nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout(rate), nn.Tanh())

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=False)

    x = torch.randn(3, 4)
    refused("draws random numbers in the backward pass", Net(0.5), x, loss=torch.sum)
    net = Net(0.5).eval()
    loss, gradients = emplace.torch.capture(net, x, loss=torch.sum).run(x)
    net(x).sum().backward()
    assert torch.equal(gradients["inner.0.weight"], net.inner[0].weight.grad)
    emplace.torch.capture(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), x, loss=torch.sum)


def test_mistakes_are_explained():
    net, x = nn.Linear(4, 2), torch.randn(3, 4)
    refused("expected a torch.nn.Module, not function", lambda x: x, x)
    refused("expected a tensor, a tuple", net, "x")
    refused("does not take its example inputs.*mat1 and mat2", net, torch.randn(3, 5))
    refused("does not take its example inputs.*", net, (x, x))
    refused("float32 of shape \\[3, 2\\]; expected a tensor of one number", net, x,
            loss=lambda output: output)
    refused("does not depend on any parameter", net, x, loss=lambda output: torch.zeros(()))
    refused("no parameter that requires a gradient", nn.ReLU(), x, loss=torch.sum)
    refused("of no use without a loss", net, x, optimizer=torch.optim.SGD(net.parameters(), lr=1))
    refused("expected a torch.optim.Optimizer, not str", net, x, loss=torch.sum, optimizer="adam")
    refused("LBFGS cannot be tried on a small parameter", net, x, loss=torch.sum,
            optimizer=torch.optim.LBFGS(net.parameters()))
    refused("not the model's", net, x, loss=torch.sum,
            optimizer=torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=1))
    refused("'input': is on meta and the model on cpu", net, x.to("meta"))
    refused("model: is TorchScript, whose ops cannot be traced", torch.jit.trace(net, x), x)
    refused("model: module '0' is TorchScript", nn.Sequential(torch.jit.script(net)), x)
    refused("^module '1': looks at a tensor's contents",
            nn.Sequential(net, nn.BatchNorm1d(2, momentum=None)), x)
    refused("^BatchNorm1d: looks at a tensor's contents", nn.BatchNorm1d(4, momentum=None), x)
    captured = emplace.torch.capture(net, x)
    with pytest.raises(emplace.Error, match="'input': is float32 of shape \\[5, 4\\]; expected "
                                            "float32 of shape \\[3, 4\\]"):
        captured.run(torch.randn(5, 4))
    with pytest.raises(emplace.Error, match="2 arguments; expected what was captured: input"):
        captured.run(x, x)


def test_two_threads_capture_at_once():
    jobs = [make("gpt"), make("lstm")] * 2
    found = [None] * len(jobs)

    def work(number):
        model, x, y = jobs[number]
        found[number] = emplace.torch.capture(model, x, loss=cross_entropy, targets=y).to_dict()

    # Different models at a time; one model is swapped about while it is captured.
    for first in (0, 2):
        threads = [threading.Thread(target=work, args=(first + i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found[0] == found[2] and found[1] == found[3]
    assert any(op.get("module") == "blocks.0.up" for op in found[0]["ops"])


def test_lines_of_python_itself_are_not_the_users():
    library = sysconfig.get_paths()["stdlib"]
    assert not is_users(os.path.join(library, "contextlib.py"))
    assert is_users(__file__)
    assert is_users(os.path.join(library, "site-packages", "nets", "net.py"))
    assert not is_users(torch.nn.modules.linear.__file__)


def test_pytorch_learns_of_no_function_that_a_capture_replaced():
    """What the first trace imports makes tables of PyTorch's functions."""
    subprocess.run([sys.executable, "-c", """
import torch, emplace.torch, torch.overrides
emplace.torch.capture(torch.nn.ReLU(), torch.ones(2))
known = torch.overrides.get_ignored_functions()
assert torch.tensor in known and torch.as_tensor in known
"""], check=True)


def test_importing_emplace_does_not_import_torch():
    subprocess.run([sys.executable, "-c", "import sys, emplace; assert 'torch' not in sys.modules"],
                   check=True)


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_memory_stays_flat_over_many_captures():
    net = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 16))
    x = torch.randn(256, 16)

    def once():
        emplace.torch.capture(net, x, loss=torch.sum).run(x)

    for _ in range(20):
        once()
    gc.collect()
    before, objects = resident_bytes(), len(gc.get_objects())
    for _ in range(100):
        once()
    gc.collect()
    # A capture has some 300 KB of tensors, and 300 objects in its smaller graph.
    assert len(gc.get_objects()) - objects < 3000
    assert resident_bytes() - before < 8e6


def test_libraries_are_turned_off_where_flags_may_not_be_set():
    code = ("import torch; torch.backends.disable_global_flags()\n"
            "import emplace.torch\n"
            "print(emplace.torch.capture(torch.nn.LSTM(4, 4), torch.ones(3, 1, 4), portable=True))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "LSTM" in done.stdout, done.stderr


def test_recurrent_networks_of_exported_programs_are_known():
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(name) for name in "xhw"]
    result = graph.call_function(torch.ops.aten.lstm.input, (
        inputs[0], inputs[1:2], inputs[2:], False, 1, 0.0, False, False, False))
    graph.output(result)
    assert _compat.is_recurrent(torch.fx.GraphModule({}, graph))
    assert _compat.is_recurrent(nn.GRU(2, 2)) and not _compat.is_recurrent(nn.Linear(2, 2))
