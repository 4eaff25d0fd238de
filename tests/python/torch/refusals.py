"""Captures that must end in a message."""
import pytest

import emplace.torch


def refused(match, *args, **kwargs):
    with pytest.raises(emplace.Error, match=match):
        emplace.torch.capture(*args, **kwargs)
