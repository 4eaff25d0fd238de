"""Floating-point operations of the operators that do most of the work, counted from shapes.

A multiplication with an addition counts two. Other operators are bound by bytes, which the cost
model counts by itself.
"""
import math

from ._operators import operator_name


def _size(shapes, node):
    return shapes[node].size


def _mm(shapes, node):
    a, b = (_size(shapes, arg) for arg in node.args[:2])
    return 2 * math.prod(a) * b[-1]


def _addmm(shapes, node):
    a, b = (_size(shapes, arg) for arg in node.args[1:3])
    return 2 * math.prod(a) * b[-1]


def _mv(shapes, node):
    return 2 * math.prod(_size(shapes, node.args[0]))


def _convolution(shapes, node):
    x, weight = (_size(shapes, arg) for arg in node.args[:2])
    y = shapes[node].size
    taps = math.prod(weight[2:])
    if node.args[6]:  # transposed: every input element is multiplied with a kernel of weight[1]
        return 2 * math.prod(x) * weight[1] * taps
    return 2 * math.prod(y) * weight[1] * taps


def _convolution_backward(shapes, node):
    gradient, x, weight = (_size(shapes, arg) for arg in node.args[:3])
    one = 2 * math.prod(x if node.args[7] else gradient) * weight[1] * math.prod(weight[2:])
    return one * sum(bool(asked) for asked in node.args[-1][:2])


def _attention(shapes, node):
    query, key, value = (_size(shapes, arg) for arg in node.args[:3])
    pairs = math.prod(query[:-1]) * key[-2]
    return 2 * pairs * (query[-1] + value[-1])


def _attention_backward(shapes, node):
    query, key, value = (_size(shapes, arg) for arg in node.args[1:4])
    pairs = math.prod(query[:-1]) * key[-2]
    return 2 * pairs * (3 * query[-1] + 2 * value[-1])


_RULES = {
    "mm": _mm, "bmm": _mm, "addmm": _addmm, "baddbmm": _addmm, "mv": _mv, "dot": _mv,
    "convolution": _convolution, "convolution_backward": _convolution_backward,
}


def flops_of(node, shapes):
    """None where they are not known."""
    name = operator_name(node.target)
    rule = _RULES.get(name)
    if rule is None and name.startswith("_scaled_dot_product"):
        rule = _attention_backward if name.endswith("backward") else _attention
    return None if rule is None else int(rule(shapes, node))
