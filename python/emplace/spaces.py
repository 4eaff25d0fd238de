"""What actions and observations may be, with the part of gymnasium's spaces that agents ask for."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    import numpy as np


class Space:
    """Values of one sort. `sample` draws from numbers that `seed` begins anew."""

    def __init__(self) -> None:
        self._random: Optional["np.random.Generator"] = None

    @property
    def random(self) -> "np.random.Generator":
        if self._random is None:
            self.seed()
            assert self._random is not None
        return self._random

    def seed(self, seed: Optional[int] = None) -> None:
        import numpy as np

        self._random = np.random.default_rng(seed)

    def contains(self, value: object) -> bool:
        raise NotImplementedError

    def __contains__(self, value: object) -> bool:
        return self.contains(value)


class Discrete(Space):
    """The numbers from 0 to n - 1.

    >>> Discrete(3).contains(2), Discrete(3).contains(3), Discrete(3).contains(1.0)
    (True, False, False)
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def contains(self, value: object) -> bool:
        return isinstance(value, numbers.Integral) and 0 <= int(value) < self.n

    def sample(self, mask: Any = None) -> int:
        """One of the numbers; of those alone for which the mask, an observation's `allowed`, is true."""
        import numpy as np

        allowed = np.arange(self.n) if mask is None else np.asarray(mask).nonzero()[0]
        return int(self.random.choice(allowed))

    def __repr__(self) -> str:
        return f"Discrete({self.n})"


class MultiBinary(Space):
    """n times yes or no."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.shape = (n,)

    def contains(self, value: object) -> bool:
        import numpy as np

        return (
            isinstance(value, np.ndarray)
            and value.shape == self.shape
            and bool(((value == 0) | (value == 1)).all())
        )

    def sample(self) -> "np.ndarray[Any, Any]":
        return self.random.integers(2, size=self.n).astype(bool)

    def __repr__(self) -> str:
        return f"MultiBinary({self.n})"


class Box(Space):
    """Whole numbers from `low` to `high`, as int32."""

    def __init__(self, low: int, high: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.low, self.high, self.shape = low, high, shape

    def contains(self, value: object) -> bool:
        import numpy as np

        return (
            isinstance(value, np.ndarray)
            and value.dtype == np.int32
            and value.shape == self.shape
            and bool(((value >= self.low) & (value <= self.high)).all())
        )

    def sample(self) -> "np.ndarray[Any, Any]":
        import numpy as np

        return self.random.integers(self.low, self.high, size=self.shape, dtype=np.int32, endpoint=True)

    def __repr__(self) -> str:
        return f"Box({self.low}, {self.high}, {self.shape}, int32)"


class Dict(Space):
    """A value of each of some spaces, by name."""

    def __init__(self, spaces: dict[str, Any]) -> None:
        super().__init__()
        self.spaces = spaces

    def seed(self, seed: Optional[int] = None) -> None:
        super().seed(seed)
        for space in self.spaces.values():
            space.seed(int(self.random.integers(2**31)))

    def contains(self, value: object) -> bool:
        return (
            isinstance(value, dict)
            and value.keys() == self.spaces.keys()
            and all(space.contains(value[name]) for name, space in self.spaces.items())
        )

    def sample(self) -> dict[str, Any]:
        return {name: space.sample() for name, space in self.spaces.items()}

    def __getitem__(self, name: str) -> Any:
        return self.spaces[name]

    def __repr__(self) -> str:
        return f"Dict({', '.join(f'{name}: {space}' for name, space in self.spaces.items())})"


def placement_spaces(room: Any, groups: int, devices: int) -> tuple[Any, Any]:
    """Of actions and of observations, made of the classes of `room`: this module, or gymnasium.spaces."""
    import numpy as np

    options = {} if room.__name__ == __name__ else {"dtype": np.int32}
    return room.Discrete(devices), room.Dict({
        "group": room.Discrete(groups + 1),
        "allowed": room.MultiBinary(devices),
        "devices": room.Box(-1, devices - 1, shape=(groups,), **options),
    })
