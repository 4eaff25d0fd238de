"""Op times on the user's devices, measured inside whole steps."""
import statistics
import time
from typing import Any, Dict

import torch

from . import _show
from ._capture import Capture
from ._devices import devices_from
from ._errors import Error
from ._run import Program
from ._types import Devices, Links
from ._updates import update_seconds


class Profile:
    """What was measured.

    capture  with the times in its graph
    steps    seconds of a step with everything on the device, by its name
    links    between devices: {"from", "to", "bandwidth", "latency_us", "channel"} each
    """

    def __init__(self, captured: Capture, steps: Dict[str, float], links: Links) -> None:
        self.capture, self.steps, self.links = captured, steps, links

    def bandwidth(self, source: str, target: str) -> float:
        """Bytes per second between two devices."""
        for link in self.links:
            if (link["from"], link["to"]) == (source, target):
                return link["bandwidth"]
        raise Error(f"link {source} to {target}: was not measured")

    def to_dict(self) -> Dict[str, Any]:
        return {"name": self.capture.name, "steps": self.steps, "links": self.links}

    def _repr_html_(self):
        return _show.profile(self)

    def __repr__(self):
        times = ", ".join(f"{name} {seconds * 1e3:.3f} ms" for name, seconds in self.steps.items())
        return f"<emplace.torch.Profile of {self.capture.name}: {times}>"


class _HostClock:
    """Devices that have computed when the call returns."""

    def __init__(self):
        self.seconds = {}

    def around(self, node, _device, call):
        start = time.perf_counter()
        value = call()
        self.seconds[node] = time.perf_counter() - start
        return value

    def finish(self):
        return self.seconds


class _GpuClock:
    """An event after each op: an op takes from the end of the one before it to its own, so that
    what the host needs to launch it counts where the device waits for that."""

    def __init__(self, device):
        self.device = device
        self.start = torch.cuda.Event(enable_timing=True)
        self.events = []
        self.start.record(torch.cuda.current_stream(device.torch_device))

    def around(self, node, _device, call):
        value = call()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device.torch_device))
        self.events.append((node, event))
        return value

    def finish(self):
        self.device.synchronize()
        seconds, before = {}, self.start
        for node, event in self.events:
            seconds[node] = before.elapsed_time(event) / 1e3
            before = event
        return seconds


def profile(captured: Capture, *, devices: Devices, steps: int = 10, warm_up: int = 3) -> Profile:
    """Measures the ops of a captured step on each device, and the links between them.

    A step runs with everything on the device, `warm_up` times unmeasured and `steps` times measured;
    an op's time is the median. Times go into the capture's graph by the devices' names, so that
    whatever places the graph uses them. An optimizer's step is measured as a whole, on copies, and shared
    out to the updates by bytes.
    The model's parameters, buffers and optimizer stay as they are.

    >>> import torch, emplace.torch
    >>> captured = emplace.torch.capture(torch.nn.Linear(4, 2), torch.zeros(3, 4))
    >>> emplace.torch.profile(captured, devices=["cpu"]).steps["cpu"] > 0
    True
    """
    if not isinstance(captured, Capture):
        raise Error(f"profile: expected what emplace.torch.capture returns, not "
                    f"{type(captured).__name__}")
    if not isinstance(steps, int) or steps < 1:
        raise Error(f"profile: expected at least one step, not {steps!r}")
    if not isinstance(warm_up, int) or warm_up < 0:
        raise Error(f"profile: warm_up is {warm_up!r}; expected how many steps are not measured")
    places, took = devices_from(devices), {}
    times: Dict[str, Dict[str, float]] = {}
    for device in places:
        try:
            seconds, took[device.name] = _on(captured, device, steps, warm_up)
            seconds.update(update_seconds(captured, device, steps, warm_up))
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            raise Error(f"profile: {captured.name} does not fit {device.name} as a whole; expected a "
                        "device with room for the step, or a smaller batch") from error
        for op, value in seconds.items():
            times.setdefault(op, {})[device.name] = value * 1e6
    captured.set_times(times)
    return Profile(captured, took, measure_links(places))


def _on(captured, device, steps, warm_up):
    trace, document = captured.trace, captured.document
    everywhere = {op["name"]: device.name for op in document.ops}
    program = Program(captured, [device], everywhere)
    gpu = device.torch_device.type == "cuda"
    measured, whole = {}, []
    states = [device.take(state.value.detach()) for state in trace.parameters + trace.buffers]
    inputs = [device.take(tensor) for tensor in captured.inputs.tensors]
    for step in range(warm_up + steps):
        device.synchronize()
        clock = _GpuClock(device) if gpu else _HostClock()
        begin = time.perf_counter()
        program.run(states, inputs, clock.around)
        device.synchronize()
        if step >= warm_up:
            whole.append(time.perf_counter() - begin)
            for node, seconds in clock.finish().items():
                measured.setdefault(document.op_of[node], []).append(seconds)
    return ({op: statistics.median(seconds) for op, seconds in measured.items()},
            statistics.median(whole))


def measure_links(devices, small=4096, large=32 * 2**20, times=7):
    """Rules for a cluster, from copies of two sizes between every two devices."""
    links = []
    for source in devices:
        for target in devices:
            if source is target:
                continue
            took = []
            for size in (small, large):
                data = source.take(torch.zeros(size, dtype=torch.uint8))
                took.append(statistics.median(_copy_seconds(data, source, target)
                                              for _ in range(times)))
            bandwidth = (large - small) / max(took[1] - took[0], 1e-9)
            latency = max(0.0, took[0] - small / bandwidth)
            links.append({"from": source.name, "to": target.name, "bandwidth": bandwidth,
                          "latency_us": latency * 1e6, "channel": "out"})
    return links


def _copy_seconds(data, source, target):
    source.synchronize()
    target.synchronize()
    begin = time.perf_counter()
    target.take(data)
    source.synchronize()
    target.synchronize()
    return time.perf_counter() - begin
