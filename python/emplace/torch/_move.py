"""Moves what a model keeps to a device."""
import torch

from ._optimizer import group_of


def move_state(model, state, device, optimizer):
    """A parameter or buffer, with its gradient and the optimizer's state, to a device."""
    old = state.value
    if device.has(old):
        return
    data = device.take(old.detach())
    if type(data) is torch.Tensor and torch._has_compatible_shallow_copy_type(old, data):
        # As Module.to() does: whoever holds the parameter sees it move.
        old.data = data
        if old.grad is not None:
            old.grad.data = device.take(old.grad)
        new = old
    else:
        new = torch.nn.Parameter(data, old.requires_grad) if isinstance(
            old, torch.nn.Parameter) else data
        for name in state.names:
            path, _, key = name.rpartition(".")
            owner = model.get_submodule(path)
            (owner._parameters if key in owner._parameters else owner._buffers)[key] = new
            if isinstance(owner, torch.nn.RNNBase):  # keeps a list of its own
                owner._flat_weights = [getattr(owner, name) for name in owner._flat_weights_names]
    if optimizer is not None:
        _move_optimizer_state(optimizer, old, new, device)


def _move_optimizer_state(optimizer, old, new, device):
    group = group_of(optimizer, old) or {}
    for each in optimizer.param_groups:
        each["params"] = [new if parameter is old else parameter for parameter in each["params"]]
    if old in optimizer.state:
        kept = optimizer.state.pop(old)
        # Counts of steps are numbers, which stay with the host unless the parameter's device counts.
        numbers = group.get("fused") or group.get("capturable")
        optimizer.state[new] = {
            key: device.take(value) if isinstance(value, torch.Tensor) and (
                numbers or value.dim() > 0) else value
            for key, value in kept.items()}
