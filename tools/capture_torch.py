#!/usr/bin/env python3
"""Captures a PyTorch model's training step, op by op, with measured times, as emplace.graph/1.

    tools/capture_torch.py my_models:make_net -o net.json.gz     # a function in my_models.py
    tools/capture_torch.py vit-small:32 unet -o captures/        # built-in examples, a folder
    emplace profile-fit captures/*.json.gz -o my-gpu.yaml

A model is `module:function`, a function without arguments that returns (model, example_inputs) or
(model, example_inputs, name); the model's forward returns the loss, a scalar. Or it is the name of
a built-in example, with a batch size if not the usual one (`--list` shows them).

The joint graph of forward and backward is exported at the level of aten operators, without
decompositions; each parameter gets an `sgd_update` op, which is not timed. Every other op is run on
the real values that reach it: three launches to warm up, then the mean of ten back to back. So the
time of a tiny op is what the framework needs to launch it. Float32 matrix products run in TF32
where the device has it (--no-tf32 forbids it). One model that fails does not stop the others.

Needs PyTorch 2.0 or newer: what exports the joint graph is not in older ones.
"""
import argparse
import gzip
import importlib
import json
import os
import sys
import time
import traceback

import torch

if int(torch.__version__.split(".")[0]) < 2:
    sys.exit(f"capture_torch.py: needs PyTorch 2.0 or newer, and this is {torch.__version__} "
             f"({os.path.dirname(torch.__file__)}); e.g. pip install torch in a virtual environment")

import torch.fx
import torch.utils._pytree as pytree
from torch import nn

from capture_examples import EXAMPLES

WARM_UP = 3
LAUNCHES = 10

# ---------------------------------------------------------------------------------------------
# Tracing. The result: a graph module, its placeholders' (kind, name, value) in order, the node of
# the loss, and [(gradient's node, parameter's name)].


class Step(nn.Module):
    """The exporter wants a tuple of outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        loss = self.model(*inputs)
        return (loss[0] if isinstance(loss, (tuple, list)) else loss,)


def output_nodes(module):
    output = next(node for node in module.graph.nodes if node.op == "output")
    return pytree.tree_leaves(output.args[0])


def short(name):
    return name[len("model."):] if name.startswith("model.") else name


def trace_with_aot(step, inputs):
    from torch._functorch.aot_autograd import aot_export_module
    module, _ = aot_export_module(step, inputs, trace_joint=True, output_loss_index=0)
    parameters = list(step.named_parameters(remove_duplicate=False))
    sources = [("parameter", short(name), value.detach()) for name, value in parameters]
    sources += [("buffer", short(name), value)
                for name, value in step.named_buffers(remove_duplicate=False)]
    sources += [("input", f"input{i}", value) for i, value in enumerate(inputs)]
    trained = [short(name) for name, value in parameters if value.requires_grad]
    # Updated buffers come first, then the loss, then the gradients in the parameters' order.
    outputs = output_nodes(module)
    loss = outputs[-len(trained) - 1]
    return module, sources, loss, list(zip(outputs[-len(trained):], trained))


def trace_with_make_fx(step, inputs):
    from torch.fx.experimental.proxy_tensor import make_fx
    names = [name for name, _ in step.named_parameters()]
    buffer_names = [name for name, _ in step.named_buffers()]
    values = [value for _, value in step.named_parameters()]
    buffers = [value for _, value in step.named_buffers()]

    def run(parameters, own_buffers, arguments):
        state = {**dict(zip(names, parameters)), **dict(zip(buffer_names, own_buffers))}
        loss = torch.func.functional_call(step, state, tuple(arguments))[0]
        trained = [value for value in parameters if value.requires_grad]
        return loss, torch.autograd.grad(loss, trained, allow_unused=True)

    module = make_fx(run, tracing_mode="real")(values, buffers, list(inputs))
    sources = [("parameter", short(name), value.detach()) for name, value in zip(names, values)]
    sources += [("buffer", short(name), value) for name, value in zip(buffer_names, buffers)]
    sources += [("input", f"input{i}", value) for i, value in enumerate(inputs)]
    trained = [short(name) for name, value in zip(names, values) if value.requires_grad]
    outputs = output_nodes(module)
    gradients = [(node, name) for node, name in zip(outputs[1:], trained) if node is not None]
    return module, sources, outputs[0], gradients


def trace(model, inputs):
    step = Step(model).train()
    try:
        return trace_with_aot(step, inputs)
    except Exception:  # whatever the exporter cannot do, plain tracing may
        traceback.print_exc()
        print("  aot export failed, tracing with make_fx instead", file=sys.stderr)
        return trace_with_make_fx(step, inputs)


def read_nodes(node):
    """What the node reads, in the order of its arguments, repeats included."""
    nodes = []
    torch.fx.node.map_arg((node.args, node.kwargs), lambda read: nodes.append(read) or read)
    return nodes


def ancestors(node):
    seen, stack = set(), [node]
    while stack:
        at = stack.pop()
        if at not in seen:
            seen.add(at)
            stack.extend(at.all_input_nodes)
    return seen


# ---------------------------------------------------------------------------------------------
# Running and timing.


def operator_name(target):
    schema = getattr(target, "_schema", None)
    name = schema.name if schema is not None else getattr(target, "__name__", str(target))
    return name.split("::")[-1]


def is_view(target):
    """Whether every output aliases the first input without changing it."""
    schema = getattr(target, "_schema", None)
    if schema is None or not schema.returns:
        return False
    if operator_name(target) == "_unsafe_view":
        return True
    aliases = [value.alias_info for value in schema.returns]
    return all(alias is not None and not alias.is_write for alias in aliases)


def seconds_per_launch(function, device, launches):
    if device.type != "cuda":
        start = time.perf_counter()
        for _ in range(launches):
            function()
        return (time.perf_counter() - start) / launches
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(launches):
        function()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000 / launches


def count_flops(function):
    from torch.utils.flop_counter import FlopCounterMode
    try:
        with FlopCounterMode(display=False) as counter:
            function()
        return int(counter.get_total_flops())
    except Exception:  # an operator without a formula that the counter stumbles over
        return 0


class Walk:
    """Runs the graph node by node on real values, dropping each after its last use."""

    def __init__(self, module, values):
        self.module = module
        self.values = list(values)
        self.last_use = {}
        for node in module.graph.nodes:
            for read in node.all_input_nodes:
                self.last_use[read] = node

    def run(self, visit=None):
        env, position = {}, 0
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                env[node] = self.values[position]
                position += 1
            elif node.op == "get_attr":
                env[node] = self.attribute(node.target)
            elif node.op == "call_function":
                fetch = lambda value: torch.fx.node.map_arg(value, lambda n: env[n])
                args, kwargs = fetch(node.args), fetch(node.kwargs)
                env[node] = node.target(*args, **kwargs)
                if visit is not None:
                    visit(node, args, kwargs, env[node])
                del args, kwargs
            if node not in self.last_use:
                env.pop(node, None)
            for read in node.all_input_nodes:
                if self.last_use[read] is node and read.op == "call_function":
                    env.pop(read, None)

    def attribute(self, target):
        value = self.module
        for part in target.split("."):
            value = getattr(value, part)
        return value


class Writer:
    """Tensors and ops of the file, in the order in which they are met."""

    def __init__(self):
        self.tensors, self.ops, self.names, self.of_node = [], [], set(), {}

    def tensor(self, value):
        self.tensors.append({"shape": list(value.shape), "dtype": str(value.dtype).split(".")[-1]})
        return len(self.tensors) - 1

    def op(self, name, kind, inputs, outputs, **fields):
        unique, count = name, 1
        while unique in self.names:
            count += 1
            unique = f"{name}_{count}"
        self.names.add(unique)
        self.ops.append({"name": unique, "type": kind, "inputs": inputs, "outputs": outputs,
                         **fields})


def tensor_leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in tensor_leaves(item)]
    return []


def capture(model, inputs, name, key, device):
    module, sources, loss, gradients = trace(model, inputs)
    writer = Writer()
    forward = ancestors(loss)
    kinds = iter(sources)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            kind, source_name, value = next(kinds)
            writer.of_node[node] = [writer.tensor(value)]
            writer.op(source_name, kind, [], writer.of_node[node])
    walk = Walk(module, [value for _, _, value in sources])
    for node in module.graph.nodes:
        if node.op == "get_attr":
            writer.of_node[node] = [writer.tensor(walk.attribute(node.target))]
            writer.op(node.name, "constant", [], writer.of_node[node])
    parameters = {source_name: i for i, (kind, source_name, _) in enumerate(sources)
                  if kind == "parameter"}

    result_of = {}  # by node with several outputs: None for each that is no tensor

    def visit(node, args, kwargs, result):
        if operator_name(node.target) == "getitem":
            source, index = node.args
            outputs = [i for i, value in enumerate(result_of[source]) if value is not None]
            writer.of_node[node] = ([writer.of_node[source][outputs.index(index)]]
                                    if index in outputs else [])
            return
        if isinstance(result, (tuple, list)):
            result_of[node] = [True if isinstance(value, torch.Tensor) else None
                               for value in result]
        leaves = tensor_leaves(result)
        if not leaves:
            return
        launch = lambda: node.target(*args, **kwargs)
        seconds_per_launch(launch, device, WARM_UP)
        seconds = seconds_per_launch(launch, device, LAUNCHES)
        reads = [i for read in read_nodes(node) for i in writer.of_node[read]]
        writer.of_node[node] = [writer.tensor(leaf) for leaf in leaves]
        fields = {"phase": "forward" if node in forward else "backward",
                  "flops": count_flops(launch), "time_us": {key: round(seconds * 1e6, 2)}}
        if is_view(node.target):
            fields["view"] = True
        writer.op(node.name, operator_name(node.target), reads, writer.of_node[node], **fields)

    with torch.no_grad():
        walk.run(visit)
        for node, parameter in gradients:
            writer.op(f"update_{parameter}", "sgd_update",
                      writer.of_node[node][:1] + [parameters[parameter]], [], phase="update")
        walk.run()
        step = seconds_per_launch(walk.run, device, 3)
    precision = "fp32 (tf32 matmul)" if torch.backends.cuda.matmul.allow_tf32 else "fp32"
    return {"format": "emplace.graph/1", "name": name,
            "source": f"torch {torch.__version__} joint graph, {precision}, timed on "
                      f"{device_title(device)}",
            "measured_step_us": {key: round(step * 1e6)},
            "tensors": writer.tensors, "ops": writer.ops}


# ---------------------------------------------------------------------------------------------


def device_title(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"


def default_key(device):
    if device.type != "cuda":
        return f"cpu{torch.get_num_threads()}"
    words = torch.cuda.get_device_name(device).lower().replace("nvidia", "").split()
    return next((word for word in words if any(c.isdigit() for c in word)), "gpu")


def make_model(spec):
    name, _, rest = spec.partition(":")
    if name in EXAMPLES:
        function, batch = EXAMPLES[name]
        batch = int(rest) if rest else batch
        return (*function(batch), f"{name}-b{batch}")
    if not rest:
        raise SystemExit(f"capture_torch: '{spec}' is neither module:function nor one of: "
                         + ", ".join(EXAMPLES))
    sys.path.insert(0, os.getcwd())
    made = getattr(importlib.import_module(name), rest)()
    return made if len(made) == 3 else (*made, rest)


def capture_to(spec, path, key, device):
    torch.manual_seed(1)
    model, inputs, name = make_model(spec)
    model = model.to(device)
    inputs = tuple(value.to(device) for value in inputs)
    graph = capture(model, inputs, name, key, device)
    file = os.path.join(path, name + ".json.gz") if os.path.isdir(path) else path
    with gzip.open(file + ".part", "wt") as out:
        json.dump(graph, out)
    os.replace(file + ".part", file)
    total = sum(op["time_us"][key] for op in graph["ops"]
                if "time_us" in op and not op.get("view"))
    print(f"{file}: {len(graph['ops'])} ops, {total / 1000:.2f} ms without views, a step "
          f"{graph['measured_step_us'][key] / 1000:.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL",
                        help="module:function, or EXAMPLE[:BATCH]; all: every example")
    parser.add_argument("-o", "--output", default=".", help="a file, or a folder (default: here)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--key", help="the name of the times in the file (default: the device's)")
    parser.add_argument("--no-tf32", action="store_true", help="float32 products in full precision")
    parser.add_argument("--list", action="store_true", help="list the built-in examples")
    arguments = parser.parse_args()
    if arguments.list or not arguments.models:
        print("\n".join(f"{name}:{batch}" for name, (_, batch) in EXAMPLES.items()))
        return 0
    torch.backends.cuda.matmul.allow_tf32 = not arguments.no_tf32
    torch.backends.cudnn.allow_tf32 = not arguments.no_tf32
    device = torch.device(arguments.device)
    if device.type == "cuda":
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
    models = list(EXAMPLES) if arguments.models == ["all"] else arguments.models
    if len(models) > 1:
        os.makedirs(arguments.output, exist_ok=True)
    failed = []
    for spec in models:
        try:
            capture_to(spec, arguments.output, arguments.key or default_key(device), device)
        except Exception:
            traceback.print_exc()
            failed.append(spec)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    for spec in failed:
        print(f"capture_torch: {spec} failed (see above)", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
