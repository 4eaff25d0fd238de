"""A placement by modules, as a dictionary: for models that must stay their own class."""
from typing import Any, Dict, Mapping, Optional, Union

import torch

import emplace

from . import _compat, _show
from ._devices import Device, devices_from, parse_bytes
from ._document import owner_of, to_json
from ._errors import Error
from ._place import captured_for, cluster_for, measured_for, refuse_use_cpu, shortage
from ._profile import Profile
from ._stream import Part, choose_resident
from ._types import ClusterLike, Devices, ExampleInputs, Loss, Memory, Model, Targets
from ._units import Units, within

# What accelerate needs to send one tensor, beside the time on the wire.
_PER_TENSOR = 100e-6


class DeviceMap(Dict[str, Any]):
    """From modules to devices, as accelerate's dispatch_model and our dispatch take it.

    main_device  where the model's inputs and its own code are. With accelerate, give it as
                 main_device: then "cpu" means that modules are computed there
    seconds      what a step is predicted to take
    answer       the emplace.Answer; None where weights are sent
    sent_bytes   weights that a step sends to the main device; 0 where modules are computed where
                 they are
    """
    main_device: Any = None
    seconds: float
    answer: Optional[emplace.Answer] = None
    sent_bytes: int = 0
    _whole: Any = None

    def cost(self, seconds: float = 5.0, seed: int = 1) -> float:
        """How much longer a step takes than the best one that is found op by op, both simulated:
        0.04 is 4 %."""
        if self.answer is None:
            raise Error("cost: weights are sent, which has no placement op by op to compare with")
        captured, cluster, use_cpu = self._whole
        free = emplace.place(emplace.compile(captured.graph, cluster), seconds=seconds, seed=seed,
                             use_cpu=use_cpu, starts=[self.answer.device_of])
        return self.answer.time / free.time - 1

    def to_dict(self) -> Dict[str, Any]:
        return {"device_of": dict(self), "main_device": self.main_device, "seconds": self.seconds,
                "sent_bytes": self.sent_bytes}

    def _repr_html_(self):
        return _show.device_map(self)

    def __repr__(self):
        return f"DeviceMap({dict.__repr__(self)})"


def device_map(model: Model, example_inputs: ExampleInputs = None, *,
               devices: Optional[Devices] = None,
               max_memory: Optional[Mapping[Union[int, str], Memory]] = None, loss: Loss = None,
               targets: Targets = (), optimizer: Optional[torch.optim.Optimizer] = None,
               offload: str = "auto", placer: str = "auto", cluster: ClusterLike = None,
               profile: Union[bool, Profile] = False, seconds: float = 5.0, seed: int = 1,
               **options: Any) -> DeviceMap:
    """Where each module of a model should be, such that it runs there by hooks.

    Modules with residual adds stay whole, tied weights stay together, and so do modules whose
    results the code around them combines.

    model, example_inputs, loss, targets, optimizer: as `capture` takes them; or a Capture
    devices     as `place` takes them; or
    max_memory  as accelerate has it, for weights: {0: "10GiB", "cpu": "60GiB"}, with GPUs by number
    offload     what happens to modules for which one GPU has no room: "run" computes them on the
                CPU, "send" has their weights sent to the GPU each time, "auto" is the faster
    placer, cluster, profile, seconds, seed: as `place` takes them

    >>> accelerate.dispatch_model(model, device_map, main_device=device_map.main_device)  # doctest: +SKIP
    """
    if offload not in ("auto", "run", "send"):
        raise Error(f"offload '{offload}': expected auto, run or send")
    refuse_use_cpu(options)
    places, labels = _devices(devices, max_memory)
    captured = captured_for(places, model, example_inputs, loss=loss, targets=targets,
                            optimizer=optimizer)
    measured = measured_for(captured, places, profile)
    cluster, names = cluster_for(places, cluster, captured, measured)
    units = Units(captured, _target_names(captured), loose_parameters=max_memory is None)
    maps, failure = [], None
    accelerators = [device for device in places if not device.is_cpu]
    can_send = len(accelerators) == 1 and len(places) == 2 and not captured.training
    if offload == "send" and not can_send:
        raise Error("offload 'send': expected one GPU and the CPU, and a forward pass")
    if offload != "send":
        search = {"placer": placer, "seconds": seconds, "seed": seed, **options}
        try:
            maps.append(_by_placement(units, places, labels, cluster, names, search,
                                      for_accelerate=max_memory is not None))
        except Error as error:  # it may be proven that nothing fits
            failure = error
    if offload != "run" and can_send:
        maps.append(_by_sending(captured, places, labels, cluster, names, measured))
    fitting = [made for made in maps if made is not None and (
        made.answer is None or made.answer.fits)]
    if not fitting and failure is not None:
        raise failure
    if not fitting:
        raise Error(f"{captured.name}: does not fit. " + next(
            (shortage(made.answer, places) for made in maps if made is not None),
            f"{accelerators[0].name} has no room for the largest of the modules"))
    return min(fitting, key=lambda made: made.seconds)


def _devices(devices, max_memory):
    """Devices, and what the map calls each, by name."""
    if (devices is None) == (max_memory is None):
        raise Error("device_map: expected either devices or max_memory")
    if max_memory is None:
        devices = devices_from(devices)
        return devices, {device.name: device.name for device in devices}
    made = []
    for key, memory in max_memory.items():
        name = f"cuda:{key}" if isinstance(key, int) else key
        made.append((key, Device(name, memory=parse_bytes(memory))))
    return [device for _, device in made], {device.name: key for key, device in made}


def _target_names(captured):
    targets = captured.inputs.arguments(captured.inputs.tensors)[2]
    count = sum(isinstance(leaf, torch.Tensor) for leaf in _compat.flatten(targets)[0])
    return captured.trace.inputs[-count:] if count else []


def _by_placement(units, devices, labels, cluster, names, search, for_accelerate):
    """Modules are computed where they are: a placement of their parts.

    accelerate computes on the CPU only where that is the main device, to which it moves the model's
    inputs. So where modules must be on both, these stay on the CPU.
    """
    cpus = [theirs for theirs, ours in names.items() if ours == "cpu"]
    mixed = bool(cpus) and len(devices) > 1
    use_cpu = bool(cpus) and not (mixed and for_accelerate)
    answer = _place_parts(units, cluster, search, use_cpu, [])
    if mixed and for_accelerate and any(name in cpus for name in answer.device_of.values()):
        use_cpu = True
        answer = _place_parts(units, cluster, search, use_cpu, cpus)
    where = {op: names[device] for op, device in answer.device_of.items()}
    of_part = {part: where[op] for op, part in units.parts_of_ops().items() if part is not None}
    main = of_part.get(units.part_of(""), devices[0].name)
    made = _as_map(units, {key: of_part.get(units.part_of(key), main) for key in units.keys()},
                   labels)
    made.answer, made.seconds, made.main_device = answer, answer.time / 1e9, labels[main]
    made._whole = units.capture, cluster, use_cpu
    return made


def _place_parts(units, cluster, search, use_cpu, inputs_on):
    """Ops of a part share a device; the part of the model's inputs may be bound to some."""
    document, parts = dict(units.capture.to_dict()), units.parts_of_ops()
    document["ops"] = []
    for op in units.capture.to_dict()["ops"]:
        part = parts.get(op["name"])
        if part is not None:
            op = {**op, "colocate": f"part {part}"}
            if inputs_on and op["type"] == "input" and part == units.part_of(""):
                op["devices"] = inputs_on
        document["ops"].append(op)
    problem = emplace.compile(emplace.Graph.from_json(to_json(document)), cluster)
    return emplace.place(problem, use_cpu=use_cpu, **search)


def _by_sending(captured, devices, labels, cluster, names, measured):
    """Everything is computed on the GPU; weights without room there are sent."""
    units = Units(captured, loose_parameters=False, apart=False)
    gpu = next(device for device in devices if not device.is_cpu)
    cpu = next(device for device in devices if device.is_cpu)
    problem = emplace.compile(captured.graph, cluster)
    number = [names[device.name] for device in problem.cluster.devices].index(gpu.name)
    compute = float(problem.durations[:, number].sum()) / 1e9
    bandwidth = measured.bandwidth(cpu.name, gpu.name) if measured else 12e9
    # The model's own parameters are on the main device, whatever the map says.
    parts = _parts(units)
    own = sum(part.resident_bytes for part in parts if part.key == "")
    parts = [part for part in parts if part.key != ""]
    room = problem.cluster.devices[number].memory or gpu.memory
    chosen = choose_resident(parts, room - own, bandwidth, _PER_TENSOR)
    if chosen is None:
        return None
    stay, sending = chosen[0] | {""}, chosen[1]
    made = _as_map(units, {key: gpu.name if units.part_of(key) in stay else cpu.name
                           for key in units.keys()}, labels)
    made.main_device, made.seconds = labels[gpu.name], compute + sending
    made.sent_bytes = sum(part.sent_bytes for part in parts if part.key not in stay)
    return made


def _parts(units):
    """Parameters by part; "" is the model's own."""
    parts, modules = {}, {}
    for state in units.trace.parameters:
        size = state.value.numel() * state.value.element_size()
        for i, name in enumerate(state.names):
            key = units.part_of(units.key_of_state(name))
            part = parts.setdefault(key, Part(key, 0, 0, 0, 0))
            part.resident_bytes += size if i == 0 else 0
            part.sent_bytes += size
            part.sent_tensors += 1
            owner = key, owner_of(name)
            modules[owner] = modules.get(owner, 0) + size
    for (key, _), size in modules.items():
        parts[key].largest = max(parts[key].largest, size)
    return list(parts.values())


def _as_map(units, where, labels):
    """Keys in the order of the model, with containers in place of their parts where these are on
    one device."""
    order = [path for path, _ in units.capture.model.named_modules() if path]
    merged = dict(where)
    for path in sorted(order, key=lambda path: -path.count(".")):
        below = [key for key in merged if key != path and within(key, path)]
        if path not in merged and below and len({merged[key] for key in below}) == 1:
            device = merged[below[0]]
            for key in below:
                del merged[key]
            merged[path] = device
    position = {path: i for i, path in enumerate(order)}
    made = DeviceMap()
    for key in sorted(merged, key=lambda key: position.get(key, position.get(owner_of(key), -1))):
        made[key] = labels[merged[key]]
    return made


__all__ = ["DeviceMap", "device_map"]
