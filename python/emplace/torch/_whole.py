"""Operators that have a kernel of their own, which tracers take apart all the same: the pieces round
otherwise than the kernel does, and cost several times as much.

While a step is traced they stay whole; functionalize, which also takes them apart, is given
stand-ins that it knows nothing of.
"""
import contextlib
import functools

import torch

_NAMES = ("silu_backward", "mish_backward")
_OPERATORS = {getattr(torch.ops.aten, name).default for name in _NAMES}
_DECOMPOSE = torch._ops.OpOverload.decompose


@contextlib.contextmanager
def kept_whole():
    """For the time of a capture, of which there is one at once."""
    def decompose(operator, *args, **kwargs):
        if operator in _OPERATORS:
            return NotImplemented
        return _DECOMPOSE(operator, *args, **kwargs)

    torch._ops.OpOverload.decompose = decompose
    try:
        yield
    finally:
        torch._ops.OpOverload.decompose = _DECOMPOSE


@functools.lru_cache(maxsize=None)
def _library():
    """Lives as long as the process: operators cannot be defined twice."""
    library = torch.library.Library("emplace", "DEF")
    for operator in _OPERATORS:
        library.define(str(operator._schema).split("::")[-1])
        library.impl(operator._schema.name.split("::")[-1], operator, "CompositeExplicitAutograd")
    return library


@functools.lru_cache(maxsize=None)
def _stand_ins():
    _library()
    return {operator: getattr(torch.ops.emplace, operator._schema.name.split("::")[-1]).default
            for operator in _OPERATORS}


def stand_in(target):
    """What functionalize is given in place of the operator."""
    return _stand_ins()[target] if target in _OPERATORS else target


def put_back(module):
    """The operators, where their stand-ins were traced."""
    real = {other: operator for operator, other in _stand_ins().items()}
    for node in module.graph.nodes:
        if node.op == "call_function":
            node.target = real.get(node.target, node.target)
    module.recompile()
    return module
