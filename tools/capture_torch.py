#!/usr/bin/env python3
"""Captures a PyTorch model's training step, op by op, with measured times, as emplace.graph/1.

    tools/capture_torch.py my_models:make_net -o net.json.gz     # a function in my_models.py
    tools/capture_torch.py vit-small:32 unet -o captures/        # built-in examples, a folder
    emplace profile-fit captures/*.json.gz -o my-gpu.yaml

A model is `module:function`, a function without arguments that returns (model, example_inputs) or
(model, example_inputs, name); the model's forward returns the loss, a scalar. Or it is the name of
a built-in example, with a batch size if not the usual one (`--list` shows them).

Ops are timed inside whole steps by emplace.torch.profile. Float32 matrix products run in TF32 where
the device has it (--no-tf32 forbids it). One model that fails does not stop the others.

Needs the Python package (PYTHONPATH=build/python) and PyTorch 1.13 or newer.
"""
import argparse
import importlib
import os
import sys

try:
    import torch

    import emplace
    import emplace.torch
except ImportError as error:
    sys.exit(f"capture_torch.py: {error}; needs PyTorch and emplace's Python package "
             "(PYTHONPATH=build/python)")

from capture_examples import EXAMPLES


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
        raise SystemExit(f"capture_torch.py: '{spec}' is neither module:function nor one of: "
                         + ", ".join(EXAMPLES))
    sys.path.insert(0, os.getcwd())
    made = getattr(importlib.import_module(name), rest)()
    return made if len(made) == 3 else (*made, rest)


def loss_of(output):
    return output[0] if isinstance(output, (tuple, list)) else output


def capture_to(spec, path, key, device):
    torch.manual_seed(1)
    model, inputs, name = make_model(spec)
    model = model.to(device).train()
    inputs = tuple(value.to(device) for value in inputs)
    captured = emplace.torch.capture(model, inputs, loss=loss_of, name=name)
    profile = emplace.torch.profile(captured, devices=[device])
    graph = captured.to_dict()
    for op in graph["ops"]:
        if "time_us" in op:
            op["time_us"] = {key: op["time_us"].pop(str(device))}
    (step,) = profile.steps.values()
    graph["measured_step_us"] = {key: round(step * 1e6)}
    precision = "fp32 (tf32 matmul)" if torch.backends.cuda.matmul.allow_tf32 else "fp32"
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
    graph["source"] += f", {precision}, timed on {where}"
    file = os.path.join(path, name + ".json.gz") if os.path.isdir(path) else path
    captured.save(file)
    total = sum(op["time_us"][key] for op in graph["ops"]
                if "time_us" in op and not op.get("view"))
    print(f"{file}: {len(graph['ops'])} ops, {total / 1000:.2f} ms without views, a step "
          f"{step * 1e3:.2f} ms", flush=True)


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
    failed = 0
    for spec in models:
        try:
            capture_to(spec, arguments.output, arguments.key or default_key(device), device)
        except (emplace.Error, ImportError, AttributeError, RuntimeError) as error:
            failed += 1
            print(f"capture_torch.py: {spec}: {error}", file=sys.stderr)
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
