"""Devices that are only names, with real values on the CPU. An op whose tensors are on two of them
is an error, as on GPUs."""
import torch
from torch.utils._pytree import tree_flatten, tree_map

from emplace.torch import Device


class On(torch.Tensor):
    """A tensor on a device of that name."""

    @staticmethod
    def __new__(cls, value, place):
        made = torch.Tensor._make_wrapper_subclass(
            cls, value.shape, dtype=value.dtype, strides=value.stride(),
            storage_offset=value.storage_offset(), device=value.device, requires_grad=False)
        made.value, made.place = value, place
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self):
        return f"On({self.place}, {tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_flatten((args, kwargs))[0]
                   if isinstance(leaf, torch.Tensor)]
        places = {tensor.place for tensor in tensors if isinstance(tensor, On)}
        plain = any(not isinstance(tensor, On) and tensor.dim() > 0 for tensor in tensors)
        if len(places) > 1 or plain:
            raise RuntimeError(f"{function}: tensors on {sorted(places)}"
                               + (" and on none" if plain else ""))
        (place,) = places
        bare = lambda value: value.value if isinstance(value, On) else value
        result = function(*tree_map(bare, args), **tree_map(bare, kwargs))
        written = function._schema.name.endswith("_") and not function._schema.name.endswith("__")
        if written:
            return args[0]
        return tree_map(lambda value: On(value, place) if isinstance(value, torch.Tensor) else value,
                        result)


class Move(torch.autograd.Function):
    @staticmethod
    def forward(context, tensor, place):
        context.back = getattr(tensor, "place", None)
        return On(bare(tensor).clone(), place)

    @staticmethod
    def backward(context, gradient):
        if context.back is None:
            return bare(gradient).clone(), None
        return On(bare(gradient).clone(), context.back), None


def bare(tensor):
    return tensor.value if isinstance(tensor, On) else tensor


class FakeDevice(Device):
    """Counts what runs on it."""

    def __init__(self, name, memory=16 * 2**30):
        super().__init__("cpu", memory=memory, kind="p100")
        self.name, self.ops = name, 0

    def has(self, tensor):
        return isinstance(tensor, On) and tensor.place == self.name

    def take(self, tensor):
        return tensor if self.has(tensor) else Move.apply(tensor, self.name)

    def call(self, target, args, kwargs):
        self.ops += 1
        result = target(*args, **kwargs)
        return tree_map(lambda value: On(value, self.name) if isinstance(value, torch.Tensor)
                        and not isinstance(value, On) else value, result)

    @property
    def is_cpu(self):
        return False
