class Env:
    np_random_seed = None

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.np_random_seed = seed

    @property
    def unwrapped(self):
        return self
