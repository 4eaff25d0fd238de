"""Errors that say what was expected, and which line of the user's code is meant."""
import contextlib
import linecache
import os
import threading
import traceback

import torch

from emplace import Error

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PYTHON = os.path.dirname(contextlib.__file__) + os.sep
_FUNCTORCH = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "functorch") + os.sep


def is_users(filename):
    """Whether code of that file is neither PyTorch's nor Python's nor ours."""
    if filename.startswith(_PYTHON) and f"-packages{os.sep}" not in filename:
        return False
    return not filename.startswith((_TORCH, _HERE, _FUNCTORCH, "<"))


def place_of(filename, line, function):
    source = linecache.getline(filename, line).strip()
    return f"{filename}:{line}, in {function}" + (f": {source}" if source else "")


def line_of_frame(frame):
    """The innermost line of the user's from this frame outwards, or an empty string."""
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename):
            return place_of(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return ""


def line_of_error(error):
    """The innermost line of the user's that the error went through, or an empty string."""
    users = [entry for entry in traceback.extract_tb(error.__traceback__)
             if is_users(entry.filename)]
    return place_of(users[-1].filename, users[-1].lineno, users[-1].name) if users else ""


def first_line(error):
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


_LOOKS_AT_VALUES = ("value out of a tracing tensor", "data-dependent", "data dependent",
                    "_local_scalar_dense", "Could not guard", "Could not extract specialized")


def looks_at_values(error):
    """Whether tracing ended because the model's code asked for a tensor's contents."""
    return any(words in str(error) for words in _LOOKS_AT_VALUES)


def _lists_tensors(data):
    """Whether it is a list, of lists perhaps, with a tensor in it, whose contents would be read."""
    return isinstance(data, (list, tuple)) and any(
        isinstance(item, torch.Tensor) or _lists_tensors(item) for item in data)


@contextlib.contextmanager
def contents_hidden():
    """Ways to a tensor's contents that tracers do not see, and whose results would be constants of
    the step, end as those that they see. Other threads may go on."""
    here = threading.get_ident()
    before = {name: getattr(torch.Tensor, name) for name in ("tolist", "numpy", "__array__")}
    own = [name for name in before if name in torch.Tensor.__dict__]

    def hidden(name):
        def look(tensor, *args, **kwargs):
            if threading.get_ident() != here:
                return before[name](tensor, *args, **kwargs)
            raise RuntimeError(f"{name}: takes a {_LOOKS_AT_VALUES[0]}")
        return look

    def watched(owner, name, at, looks):
        function = getattr(owner, name)

        def call(*args, **kwargs):
            if threading.get_ident() == here and any(map(looks, [*args[at:], *kwargs.values()])):
                raise RuntimeError(f"{name}: takes a {_LOOKS_AT_VALUES[0]}")
            return function(*args, **kwargs)
        return owner, name, call

    functions = [watched(torch, "tensor", 0, _lists_tensors),
                 watched(torch, "as_tensor", 0, _lists_tensors),
                 watched(torch.Tensor, "new_tensor", 1, _lists_tensors),
                 watched(torch, "tensor_split", 1, torch.is_tensor),
                 watched(torch.Tensor, "tensor_split", 1, torch.is_tensor)]
    functions_before = [(owner, name, vars(owner).get(name)) for owner, name, _ in functions]
    for name in before:
        setattr(torch.Tensor, name, hidden(name))
    for owner, name, call in functions:
        setattr(owner, name, call)
    try:
        yield
    finally:
        for owner, name, function in functions_before:
            if function is None:
                delattr(owner, name)
            else:
                setattr(owner, name, function)
        for name, method in before.items():
            if name in own:
                setattr(torch.Tensor, name, method)
            else:
                delattr(torch.Tensor, name)


__all__ = ["Error", "contents_hidden", "first_line", "is_users", "line_of_error", "line_of_frame",
           "looks_at_values"]
