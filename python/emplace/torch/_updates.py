"""How long an optimizer takes for each parameter's update, on a device."""
import copy
import statistics
import time

import torch

from ._optimizer import group_of, state_bytes


def update_seconds(captured, device, steps, warm_up):
    """By op: its share of what optimizer.step() takes with all parameters on the device. Optimizers
    update many parameters at once, so shares are by the bytes that are read. Works on copies."""
    optimizer, ops = captured.optimizer, captured.document.update_of
    states = [state for state in captured.trace.parameters if state.name in ops
              and optimizer is not None and group_of(optimizer, state.value) is not None]
    if not states:
        return {}
    copied = optimizer_on(optimizer, [state.value for state in states], device)
    took = []
    for step in range(warm_up + 1 + steps):  # the first one makes the optimizer's state
        device.synchronize()
        begin = time.perf_counter()
        copied.step()
        device.synchronize()
        if step > warm_up:
            took.append(time.perf_counter() - begin)
    sizes = [2 * state.value.numel() * state.value.element_size()
             + state_bytes(optimizer, state.value) for state in states]
    whole = statistics.median(took)
    return {ops[state.name]: whole * size / sum(sizes) for state, size in zip(states, sizes)}


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
    for group in copied.param_groups:
        counts = group.get("fused") or group.get("capturable")
        for parameter in group["params"]:
            kept = copied.state.get(parameter)
            if kept and parameter.grad is not None:
                copied.state[parameter] = {
                    key: device.take(value) if isinstance(value, torch.Tensor) and (
                        counts or value.dim() > 0) else value for key, value in kept.items()}
    return copied
