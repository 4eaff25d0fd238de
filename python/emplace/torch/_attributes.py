"""Attributes of aten operators under the names that ONNX has for them."""
import math

import torch

from ._operators import operator_name

_RENAMED = {  # arguments of any operator
    "stride": "strides", "dilation": "dilations", "groups": "group", "eps": "epsilon",
    "keepdim": "keepdims", "kernel_size": "kernel_shape", "negative_slope": "alpha",
    "half_to_float": None,
    "memory_format": None, "layout": None, "device": None, "pin_memory": None, "non_blocking": None,
    "generator": None, "bias_sizes": None, "implicit": None,
}
_OF_OPERATOR = {  # where the same argument means something else
    ("_softmax", "dim"): "axis", ("_log_softmax", "dim"): "axis", ("cat", "dim"): "axis",
    ("_safe_softmax", "dim"): "axis",
    ("stack", "dim"): "axis", ("select", "dim"): "axis", ("slice", "dim"): "axis",
    ("slice", "start"): "starts", ("slice", "end"): "ends", ("slice", "step"): "steps",
    ("split", "dim"): "axis", ("split_with_sizes", "dim"): "axis", ("unbind", "dim"): "axis",
    ("unsafe_split", "dim"): "axis",
    ("split_with_sizes", "split_sizes"): "split", ("unsqueeze", "dim"): "axes",
    ("squeeze", "dim"): "axes", ("gather", "dim"): "axis", ("scatter", "dim"): "axis",
    ("index_select", "dim"): "axis", ("cumsum", "dim"): "axis", ("embedding", "padding_idx"): None,
    ("permute", "dims"): "perm", ("constant_pad_nd", "pad"): "pads", ("argmax", "dim"): "axis",
    ("_softmax_backward_data", "dim"): "axis", ("_log_softmax_backward_data", "dim"): "axis",
    ("max", "dim"): "axes", ("min", "dim"): "axes", ("sum", "dim"): "axes", ("mean", "dim"): "axes",
    ("amax", "dim"): "axes", ("amin", "dim"): "axes", ("var", "dim"): "axes",
    ("native_dropout", "p"): "ratio", ("view", "size"): "shape", ("reshape", "size"): "shape",
    ("_unsafe_view", "size"): "shape", ("reshape", "shape"): "shape",
    ("expand", "size"): "shape", ("_to_copy", "dtype"): "to",
}
# Both of their sides, in ONNX's pads.
_PADDED = ("convolution", "max_pool", "avg_pool")


def attributes_of(node, shapes):
    """What the operator is given beside tensors, where it differs from PyTorch's default."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {}
    operator, attributes = operator_name(node.target), {}
    given = dict(zip((argument.name for argument in schema.arguments), node.args))
    given.update(node.kwargs)
    for argument in schema.arguments:
        name = argument.name
        value, renamed = _plain(given.get(name)), _renamed(operator, name)
        by_default = given.get(name) == argument.default_value and operator not in ("slice", "bernoulli")
        if value is None or renamed is None or by_default:
            continue
        if name == "padding" and operator.startswith(_PADDED):
            renamed, value = "pads", list(value) * 2
        attributes[renamed] = value
    if operator in ("transpose", "t"):
        attributes = {"perm": _swapped(node, shapes)}
    if operator.startswith("convolution") and not given.get("transposed", False):
        attributes.pop("transposed", None)
        attributes.pop("output_padding", None)
    return attributes


def _renamed(operator, name):
    return _OF_OPERATOR.get((operator, name), _RENAMED.get(name, name))


def _plain(value):
    """A number, a string or a list of numbers; None where the format has no such attribute."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, torch.dtype):
        return str(value).split(".")[-1]
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        if all(isinstance(item, (int, float)) for item in items):
            return items
    return None


def _swapped(node, shapes):
    rank = len(shapes[node].size)
    perm = list(range(rank))
    one, other = node.args[1:3] if len(node.args) > 2 else (0, rank - 1)
    perm[one], perm[other] = perm[other], perm[one]
    return perm
