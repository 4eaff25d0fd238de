"""What an optimizer keeps for a parameter, found by letting it update a small one."""
import functools
import inspect
import math
import re

import torch

from ._errors import Error, first_line

_PROBE = (2, 3, 5, 7, 11, 13)  # different sizes, so that each dimension can be told


def update_type(optimizer):
    """"adam_update"; without an optimizer the gradient is only added to what is there."""
    if optimizer is None:
        return "accumulate_grad"
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(optimizer).__name__).lower()
    return f"{words}_update"


def group_of(optimizer, parameter):
    for group in optimizer.param_groups:
        if any(item is parameter for item in group["params"]):
            return group
    return None


_SETTINGS = {  # of optimizers that emplace knows: its names for them
    "SGD": {"lr": "learning_rate", "momentum": "momentum", "weight_decay": "weight_decay"},
    "Adam": {"lr": "learning_rate", "betas": ("beta1", "beta2"), "eps": "epsilon",
             "weight_decay": "weight_decay"},
    "AdamW": {"lr": "learning_rate", "betas": ("beta1", "beta2"), "eps": "epsilon",
              "weight_decay": "decoupled_decay"},
}
_FOR_SPEED = ("foreach", "fused", "capturable", "differentiable", "decoupled_weight_decay")


def settings_of(optimizer, parameter):
    """What the parameter's update is given, as attributes: all of what is not as usual."""
    group = group_of(optimizer, parameter) if optimizer is not None else None
    names = _SETTINGS.get(type(optimizer).__name__)
    if group is None or names is None:
        return {}
    settings = {}
    for key, value in group.items():
        if key not in optimizer.defaults or key in _FOR_SPEED:
            continue
        name = names.get(key, key)
        if isinstance(name, tuple):
            settings.update(zip(name, map(float, value)))
        elif key in ("lr", "eps") or value:
            settings[name] = float(value)
    return settings


def state_bytes(optimizer, parameter):
    if optimizer is None:
        return 0
    group = group_of(optimizer, parameter)
    if group is None:
        return 0
    settings = tuple(sorted((key, value) for key, value in group.items()
                            if key in optimizer.defaults and _plain(value)))
    total = 0
    for shape, size in _state_shapes(type(optimizer), settings, parameter.dim(), parameter.dtype):
        total += size * math.prod(parameter.shape[item] if is_dimension else item
                                  for is_dimension, item in shape)
    return total


def _plain(value):
    return isinstance(value, (int, float, bool, str)) or (
        isinstance(value, tuple) and all(isinstance(item, (int, float)) for item in value))


@functools.lru_cache(maxsize=64)
def _state_shapes(kind, settings, rank, dtype):
    """Each tensor of the state: (whether it is a dimension of the parameter's, which or how large)
    by dimension, and the size of an element."""
    probe = torch.nn.Parameter(torch.ones(_PROBE[:rank], dtype=dtype))
    taken = inspect.signature(kind).parameters
    settings = {key: value for key, value in settings
                if key in taken and key not in ("capturable", "fused")}
    if "lr" in taken:
        settings.setdefault("lr", 0.1)
    try:
        copy = kind([probe], **settings)
        probe.grad = torch.ones_like(probe)
        copy.step()
    except Exception as error:
        raise Error(f"optimizer: {kind.__name__} cannot be tried on a small parameter "
                    f"({first_line(error)}); expected one that updates by step() alone") from error
    kept = []
    for value in copy.state[probe].values():
        if isinstance(value, torch.Tensor) and value.dim() > 0:
            shape = tuple((size in _PROBE[:rank], _PROBE.index(size) if size in _PROBE[:rank]
                           else size) for size in value.shape)
            kept.append((shape, value.element_size()))
    return tuple(kept)
