"""Devices that steps run on, and the cluster that they are for the simulator."""
import contextlib
import os
import re
import warnings
from typing import Any, Callable, ContextManager, List, Optional, Sequence, Tuple, Union

import torch

import emplace

from ._errors import Error

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_bytes(size):
    """A number of bytes, or a text such as 10GiB."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*", str(size))
    if not found or found.group(2).upper() not in _UNITS:
        raise Error(f"memory '{size}': expected bytes, or a size such as 10GiB or 500MB")
    number, unit = found.group(1), _UNITS[found.group(2).upper()]
    return int(number) * unit if number.isdigit() else int(float(number) * unit)


class Device:
    """A device of PyTorch's: "cpu", "cuda:0".

    memory  how much of it may be used, in bytes or as "10GiB". If not given: of a GPU, what is free,
            what PyTorch keeps there without using it, and what the model that is placed has there
            already; of the host, 80 % of its memory
    kind    the kind of device that the cost model takes it for, such as "h200"; by its name, if not
            given
    """

    def __init__(self, name: Union[str, torch.device], *, memory: Union[int, str, None] = None,
                 kind: Optional[str] = None) -> None:
        try:
            self.torch_device = torch.device(name)
        except RuntimeError as error:
            raise Error(f"device '{name}': expected one of PyTorch's, such as cpu or cuda:0 "
                        f"({str(error).splitlines()[0]})") from error
        if self.torch_device.type == "cuda":
            count = torch.cuda.device_count()
            if self.torch_device.index is None:
                self.torch_device = torch.device("cuda", 0)
            if self.torch_device.index >= count:
                has = f"{count} GPUs" if count else "no GPU"
                raise Error(f"device '{name}': PyTorch sees {has} here")
        elif self.torch_device.type == "meta":
            raise Error("device 'meta': holds no values; expected a device that computes")
        self.name = str(self.torch_device)
        self._memory = parse_bytes(memory) if memory is not None else None
        if kind is not None and kind not in emplace.device_kinds():
            raise Error(f"kind '{kind}': expected one of {', '.join(sorted(emplace.device_kinds()))}")
        found = kind or self._kind()
        self.kind, self._kind_is_known = found or "a100", found is not None

    @property
    def memory(self) -> int:
        return self.memory_with([])

    def memory_with(self, tensors: Sequence[torch.Tensor]) -> int:
        """What may be used by a step to which these tensors belong, wherever they are now."""
        if self._memory is not None:
            return self._memory
        if self.torch_device.type != "cuda":
            return int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        free, _ = torch.cuda.mem_get_info(self.torch_device)
        unused = (torch.cuda.memory_reserved(self.torch_device)
                  - torch.cuda.memory_allocated(self.torch_device))
        return free + unused + sum(tensor.numel() * tensor.element_size() for tensor in tensors
                                   if self.has(tensor))

    def _kind(self):
        """The built-in kind whose name is in the device's: h200 of NVIDIA H200. None where none is."""
        if self.torch_device.type != "cuda":
            return "cpu"
        words = re.split(r"[^a-z0-9]+", torch.cuda.get_device_name(self.torch_device).lower())
        kinds = set(emplace.device_kinds())
        joined = {"".join(words[i:i + 2]) for i in range(len(words))}
        for word in list(words) + sorted(joined):
            if word in kinds:
                return word
        return None

    @property
    def is_cpu(self) -> bool:
        return self.torch_device.type == "cpu"

    def has(self, tensor: torch.Tensor) -> bool:
        return tensor.device == self.torch_device

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, on this device."""
        return tensor.to(self.torch_device, non_blocking=not self.is_cpu)

    def send_to_host(
            self, tensor: torch.Tensor) -> Optional[Tuple[torch.Tensor, Callable[[], None]]]:
        """Begins to copy behind what computes the tensor, before anything else is given to the device:
        (the copy, what waits until it can be read). None where it need not begin now."""
        if self.torch_device.type != "cuda":
            return None
        copy, done = tensor.to("cpu", non_blocking=True), torch.cuda.Event()
        done.record(torch.cuda.current_stream(self.torch_device))
        return copy, done.synchronize

    def stream(self) -> ContextManager[Any]:
        """Where the device's work goes now; a thread that enters it sends its own there."""
        if self.torch_device.type != "cuda":
            return contextlib.nullcontext()
        return torch.cuda.stream(torch.cuda.current_stream(self.torch_device))  # type: ignore[no-any-return]

    def call(self, target: Callable[..., Any], args: List[Any], kwargs: Any) -> Any:
        """Runs an operator; what makes tensors of nothing makes them here."""
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": self.torch_device}
        return target(*args, **kwargs)

    def synchronize(self) -> None:
        if self.torch_device.type == "cuda":
            torch.cuda.synchronize(self.torch_device)

    def __repr__(self):
        return f"<Device {self.name}>"


def devices_from(given: Any) -> List[Device]:
    if isinstance(given, (str, torch.device, Device)):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise Error("devices: expected a list of names or Device objects, such as ['cuda:0', 'cpu'], "
                    f"not {type(given).__name__}")
    devices = [item if isinstance(item, Device) else Device(item) for item in given]
    if not devices:
        raise Error("devices: is empty; expected at least one, such as ['cuda:0', 'cpu']")
    names = [device.name for device in devices]
    for name in names:
        if names.count(name) > 1:
            raise Error(f"devices: '{name}' occurs twice")
    return devices


def warn_of_unknown_kinds(devices, stacklevel):
    """Where ops' times are estimated by kinds."""
    for device in devices:
        if not device._kind_is_known:
            title = torch.cuda.get_device_name(device.torch_device)
            warnings.warn(f"{device.name}: its name, '{title}', has no kind that emplace knows, so its ops' times "
                          "are estimated as an a100's; expected kind= of a Device, or profile=True, which measures "
                          "them", stacklevel=stacklevel + 1)


# PCIe of generation 4, as presets have it.
_PCIE = {"from": "*", "to": "*", "bandwidth": 24e9, "latency_us": 10, "channel": "out"}


def cluster_of(devices, links=None, held=()):
    """The emplace.Cluster of these devices, by their names; `held` are tensors of the step."""
    title = ", ".join(device.name for device in devices)
    lines = ["format: emplace.cluster/1", f'name: "{title}"', "devices:"]
    for device in devices:
        lines.append(f'  - {{name: "{device.name}", kind: {device.kind}, memory: {device.memory_with(held)}}}')
    lines.append("links:")
    for link in links or [_PCIE]:
        lines.append(f'  - {{from: "{link["from"]}", to: "{link["to"]}", '
                     f'bandwidth: {int(link["bandwidth"])}B/s, latency_us: {link["latency_us"]:.3f}, '
                     f'channel: {link["channel"]}}}')
    return emplace.Cluster.from_yaml("\n".join(lines) + "\n")
