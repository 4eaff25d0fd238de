"""What emplace uses of gymnasium, with the checks that gymnasium makes of environments."""

from . import spaces
from .core import Env
from .envs.registration import make, register

__all__ = ["Env", "make", "register", "spaces"]
