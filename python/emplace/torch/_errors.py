"""Errors that say what was expected, and which line of the user's code is meant."""
import linecache
import os
import traceback

import torch

from emplace import Error

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_FUNCTORCH = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "functorch") + os.sep


def is_users(filename):
    """Whether code of that file is neither PyTorch's nor ours."""
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


__all__ = ["Error", "first_line", "is_users", "line_of_error", "line_of_frame", "looks_at_values"]
