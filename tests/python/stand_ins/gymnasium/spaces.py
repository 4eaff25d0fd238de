import numpy as np


class Discrete:
    def __init__(self, n):
        self.n = n

    def contains(self, x):
        whole = isinstance(x, int) or isinstance(x, np.generic) and np.issubdtype(x.dtype, np.integer)
        return whole and 0 <= int(x) < self.n


class MultiBinary:
    def __init__(self, n):
        self.n = n

    def contains(self, x):
        return isinstance(x, np.ndarray) and x.dtype == np.int8 and x.shape == (self.n,) and set(x.tolist()) <= {0, 1}


class Box:
    def __init__(self, low, high, shape, dtype):
        self.low, self.high, self.shape, self.dtype = low, high, shape, np.dtype(dtype)

    def contains(self, x):
        right = isinstance(x, np.ndarray) and np.can_cast(x.dtype, self.dtype) and x.shape == self.shape
        return right and bool((x >= self.low).all() and (x <= self.high).all())


class Dict:
    def __init__(self, spaces):
        self.spaces = spaces

    def contains(self, x):
        return isinstance(x, dict) and x.keys() == self.spaces.keys() and all(
            space.contains(x[key]) for key, space in self.spaces.items()
        )
