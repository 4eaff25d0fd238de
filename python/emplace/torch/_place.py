"""Finds where the ops of a model's step run."""
from typing import Any, Optional, Union

import torch

import emplace

from ._capture import Capture, capture
from ._devices import cluster_of, devices_from, warn_of_unknown_kinds
from ._errors import Error
from ._placed import Placed
from ._profile import Profile
from ._profile import profile as profile_of
from ._types import (ClusterLike, Devices, ExampleInputs, Loss, Model, Placement,
                     Targets)


def place(model: Model, example_inputs: ExampleInputs = None, *, devices: Devices, loss: Loss = None,
          targets: Targets = (), optimizer: Optional[torch.optim.Optimizer] = None,
          placer: str = "auto", placement: Placement = None, cluster: ClusterLike = None,
          profile: Union[bool, Profile] = False, seconds: float = 5.0, seed: int = 1,
          name: Optional[str] = None, **options: Any) -> Placed:
    """Finds where every op of a model's step should run, and gives back what runs it there.

    model, example_inputs, loss, targets, optimizer, name: as `capture` takes them. Or `model` is a
    Capture, and nothing else of these is given.

    devices    names of PyTorch's devices, or Device objects: ["cuda:0", "cuda:1", "cpu"]
    placer     any placer of emplace's, with its `options`; `seconds` is its budget
    placement  in place of a search: an emplace.Answer, or a dictionary from op to device
    cluster    what the devices are for the simulator, one by one and in this order: a preset, a
               file's name or an emplace.Cluster. Without it, kinds and memory are those of the
               devices
    profile    True: measure the ops on the devices first; or what `profile` gave

    Parameters and buffers of the model move to their devices, as with model.to(). Raises Error
    where the model does not fit.

    >>> import torch, emplace.torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> placed = emplace.torch.place(net, torch.zeros(3, 4), devices=["cpu"], placer="single")
    >>> placed(torch.ones(3, 4)).shape, placed.device_of["0.addmm"]
    (torch.Size([3, 2]), 'cpu')
    """
    refuse_use_cpu(options)
    places = devices_from(devices)
    captured = captured_for(places, model, example_inputs, loss=loss, targets=targets,
                            optimizer=optimizer, name=name)
    for state in captured.trace.parameters + captured.trace.buffers:
        if state.value.is_meta:
            raise Error(f"'{state.name}': is on meta and has no values; expected a model on a device that computes")
    measured = measured_for(captured, places, profile)
    cluster, names = cluster_for(places, cluster, captured, measured)
    problem = emplace.compile(captured.graph, cluster)
    if placement is None:
        answer = emplace.place(problem, placer, seconds=seconds, seed=seed,
                               use_cpu=any(device.is_cpu for device in places), **options)
    else:
        answer = assessed(problem, placement, names)
    if not answer.fits:
        raise Error(f"{captured.name}: does not fit. " + shortage(answer, places))
    device_of = {op: names[device] for op, device in answer.device_of.items()}
    return Placed(captured, places, device_of, answer)


def refuse_use_cpu(options):
    if "use_cpu" in options:
        raise Error("use_cpu: is what devices say; expected 'cpu' among them, or not")


def measured_for(captured, devices, wanted):
    """A Profile of the capture, where one is wanted."""
    if not isinstance(wanted, Profile):
        return profile_of(captured, devices=devices) if wanted else None
    if wanted.capture is not captured:
        raise Error("profile: is of another capture; expected one of the model that is placed")
    return wanted


def captured_for(devices, model, example_inputs, **given):
    """A capture that these devices can run, or the one that was given."""
    if not isinstance(model, Capture):
        if example_inputs is None:
            raise Error("example_inputs: expected what the model is called with")
        mixed = len({device.torch_device.type for device in devices}) > 1
        return capture(model, example_inputs, portable=mixed, **given)
    if example_inputs is not None or any(
            len(value) > 0 if isinstance(value, (tuple, list)) else value is not None
            for value in given.values()):
        raise Error("model: is captured already; expected no inputs, loss or optimizer beside it")
    return model


def cluster_for(devices, cluster, captured, measured=None):
    """The cluster, and the device's name of PyTorch's by its name in the cluster."""
    if cluster is None:
        if measured is None:
            warn_of_unknown_kinds(devices, stacklevel=3)
        cluster = cluster_of(devices, measured.links if measured else None, captured.held())
    elif measured is not None:
        raise Error("profile: measures the devices that are here; expected no cluster beside it")
    elif isinstance(cluster, str):
        cluster = emplace.read_cluster(cluster)
    if len(cluster) != len(devices):
        raise Error(f"cluster: has {len(cluster)} devices; expected {len(devices)}, one for each of "
                    "devices")
    return cluster, {theirs.name: ours.name for theirs, ours in zip(cluster.devices, devices)}


def assessed(problem, placement, names):
    """A given placement, checked. Devices may be called as in PyTorch or as in the cluster."""
    if isinstance(placement, emplace.Answer):
        placement = placement.device_of
    if not isinstance(placement, dict):
        return emplace.assess(problem, placement)
    theirs = {ours: name for name, ours in names.items()}
    return emplace.assess(problem, {op: theirs.get(device, device)
                                    for op, device in placement.items()})


def shortage(answer, devices):
    parts = [f"{device.name} needs {readable(use.peak)} and has {readable(use.capacity)}"
             for device, use in zip(devices, answer.timeline.devices) if use.peak > use.capacity]
    return "; ".join(parts) + ": expected more memory, more devices or a smaller batch"


def readable(size):
    for unit in ("bytes", "KiB", "MiB"):
        if size < 10240:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


__all__ = ["Placed", "place"]
