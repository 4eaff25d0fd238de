"""PyTorch models in and out: capture a step, place it, run it placed.

This package imports torch; `import emplace` does not.
"""
from ._capture import Capture, capture
from ._devices import Device
from ._place import Placed, place

__all__ = ["Capture", "Device", "Placed", "capture", "place"]
