"""Runs a model by its modules: each moves its arguments to its device when it is called."""
import types
from typing import Any, Mapping, Optional

import torch

from . import _compat
from ._devices import Device, devices_from
from ._errors import Error
from ._move import move_state
from ._state import states_of
from ._types import Devices


# Where a module keeps the forward that it had as an attribute of its own, beside its class's.
_OWN = "_undispatched_forward"


def key_for(name, device_map):
    """The longest key that the name is, or is in."""
    while name not in device_map:
        if not name:
            return None
        name = name.rpartition(".")[0]
    return name


def dispatch(model: torch.nn.Module, device_map: Mapping[str, Any], *, main_device: Any = None,
             devices: Optional[Devices] = None,
             optimizer: Optional[torch.optim.Optimizer] = None) -> torch.nn.Module:
    """Puts a model's modules on their devices; autograd takes gradients the same way back.

    device_map   from modules (or parameters) to devices, as `device_map` gives it
    main_device  where the model's inputs and its own code are; as the map says, else the first
                 device in it
    devices      Device objects that the map's names mean
    optimizer    whose state moves with the parameters

    The model stays what it was, of its own class; `undispatch` takes the hooks off again.

    >>> import torch, emplace.torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> device_map = emplace.torch.device_map(net, torch.zeros(3, 4), devices=["cpu"], seconds=1)
    >>> emplace.torch.dispatch(net, device_map)(torch.zeros(3, 4)).shape
    torch.Size([3, 2])
    """
    by_name = {device.name: device for device in devices_from(devices)} if devices else {}
    for value in set(device_map.values()):
        if value not in by_name:
            by_name[value] = _device(value)
    where = {key: by_name[value] for key, value in device_map.items()}
    modules = dict(model.named_modules())
    states = states_of(model, "_parameters") + states_of(model, "_buffers")
    names = {name for state in states for name in state.names}
    for key in where:
        if key not in modules and key not in names:
            raise Error(f"device map: '{key}' is no module or parameter of the model")
    for state in states:
        keys = {key_for(name, where) for name in state.names}
        if None in keys:
            raise Error(f"device map: has no device for '{state.name}'")
        if len({where[key].name for key in keys}) > 1:
            raise Error(f"device map: '{state.name}' is tied to {', '.join(state.names[1:])}, and "
                        "they are on different devices; expected one")
    for state in states:
        move_state(model, state, where[key_for(state.name, where)], optimizer)
    for key, device in where.items():
        if key in modules:
            _hook(modules[key], device)
    main = main_device if main_device is not None else getattr(device_map, "main_device", None)
    if main is None:
        main = next(iter(device_map.values()))
    if "" not in where:
        _hook(model, by_name[main] if main in by_name else _device(main))
    return model


def undispatch(model: torch.nn.Module) -> torch.nn.Module:
    """Takes off the hooks; parameters stay where they are."""
    for module in model.modules():
        if getattr(module.__dict__.get("forward"), "is_dispatched", False):
            del module.forward
            if _OWN in module.__dict__:
                module.forward = module.__dict__.pop(_OWN)
    return model


def _device(name):
    return Device(f"cuda:{name}" if isinstance(name, int) else name)


def _hook(module, device):
    if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)):
        for child in module.children():  # it is never called itself
            _hook(child, device)
        return
    if getattr(module.forward, "is_dispatched", False):
        raise Error(f"{type(module).__name__}: is dispatched already; call undispatch first")

    def forward(self, *args, **kwargs):
        args, kwargs = _compat.tree_map(
            lambda value: device.take(value) if isinstance(value, torch.Tensor)
            and not device.has(value) else value, (args, kwargs))
        # Not a forward that was bound here: a copy of the model has modules of its own.
        if _OWN in self.__dict__:
            return self.__dict__[_OWN](*args, **kwargs)
        return type(self).forward(self, *args, **kwargs)

    forward.is_dispatched = True
    if "forward" in module.__dict__:
        module.__dict__[_OWN] = module.__dict__["forward"]
    module.forward = types.MethodType(forward, module)
