"""How long an optimizer takes for each parameter's update, on a device."""
import copy
import statistics
import time
import warnings

import torch

from ._errors import first_line
from ._optimizer import group_of, state_bytes


def update_seconds(captured, device, steps, warm_up):
    """By op: its share of what optimizer.step() takes with all parameters on the device. Optimizers
    update many parameters at once, so shares are by the bytes that are read. Works on copies."""
    optimizer, ops = captured.optimizer, captured.document.update_of
    states = [state for state in captured.trace.parameters if state.name in ops
              and optimizer is not None and group_of(optimizer, state.value) is not None]
    if not states:
        return {}
    try:
        whole = _step_seconds(optimizer_on(optimizer, [state.value for state in states], device),
                              device, steps, warm_up)
    except Exception as error:
        if "out of memory" in str(error):
            raise
        warnings.warn(f"profile: a copy of the optimizer {type(optimizer).__name__} cannot be tried "
                      f"({first_line(error)}), so its updates' times are estimated; expected one that "
                      "copy.deepcopy copies", stacklevel=3)
        return {}
    sizes = [2 * state.value.numel() * state.value.element_size()
             + state_bytes(optimizer, state.value) for state in states]
    return {ops[state.name]: whole * size / sum(sizes) for state, size in zip(states, sizes)}


def _step_seconds(optimizer, device, steps, warm_up):
    took = []
    for step in range(warm_up + 1 + steps):  # the first one makes the optimizer's state
        device.synchronize()
        begin = time.perf_counter()
        optimizer.step()
        device.synchronize()
        if step > warm_up:
            took.append(time.perf_counter() - begin)
    return statistics.median(took)


def optimizer_on(optimizer, parameters, device):
    """A copy of the optimizer with copies of these parameters, each with a gradient, on the device."""
    wanted, memo = {id(parameter) for parameter in parameters}, {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            there = parameter.detach().clone()
            if id(parameter) in wanted:
                there = device.take(there)
            memo[id(parameter)] = made = torch.nn.Parameter(there)
            if id(parameter) in wanted:
                made.grad = torch.ones_like(there)
    copied = copy.deepcopy(optimizer, memo)
    # Optimizer's own way of being copied leaves out what a subclass or a user added. A scheduler puts a
    # `step` there that counts the original's.
    for key, value in vars(optimizer).items():
        if key not in vars(copied) and key != "step":
            setattr(copied, key, copy.deepcopy(value, memo))
    for group in copied.param_groups:
        counts = group.get("fused") or group.get("capturable")
        for parameter in group["params"]:
            kept = copied.state.get(parameter)
            if kept and parameter.grad is not None:
                copied.state[parameter] = {
                    key: device.take(value) if isinstance(value, torch.Tensor) and (
                        counts or value.dim() > 0) else value for key, value in kept.items()}
    return copied
