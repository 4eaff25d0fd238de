"""A placer that learns by REINFORCE, in PyTorch, beside the placers of emplace.

    PYTHONPATH=build/python /usr/bin/python3 examples/reinforce.py --model zoo:gnmt-4 --cluster 4xp100 --seconds 300

The ops of a module, forward, backward and update, are one decision; of a recurrent one, so are ten steps. The policy
has an embedding for each module, which a small network turns into a distribution over devices. Rounds of samples are
evaluated by the simulator; what is better than the mean becomes likelier.
"""

import argparse
import re
import time

import emplace
import numpy as np
import torch


class Policy(torch.nn.Module):
    def __init__(self, features, num_devices, width=64):
        super().__init__()
        self.embedding = torch.nn.Embedding(len(features), width)
        self.describe = torch.nn.Linear(features.shape[1], width)
        self.decide = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(width, num_devices))
        self.register_buffer("features", features)

    def forward(self):
        hidden = self.embedding.weight + self.describe(self.features)
        return torch.distributions.Categorical(logits=self.decide(hidden))


def units_of(features):
    """The unit of every group, and what is known of each unit, scaled."""
    names = [re.sub(r"step\.(\d+)", lambda step: f"steps.{int(step[1]) // 10}", name) for name in features["modules"]]
    _, unit = np.unique(names, return_inverse=True)
    columns = [features["durations"].mean(axis=1), features["resident"], features["outputs"]]
    sums = [np.bincount(unit, weights=column) for column in columns]
    begin = np.full(unit.max() + 1, np.inf)
    np.minimum.at(begin, unit, features["before"])
    table = np.stack([*sums, begin], axis=1)
    return unit, torch.tensor(table / (table.max(axis=0) + 1), dtype=torch.float32)


def reinforce(session, batch=32, rate=0.03, entropy_weight=0.003):
    torch.manual_seed(session.seed)
    features = emplace.features_of(session.problem)
    unit, known = units_of(features)
    policy = Policy(known, len(session.problem.cluster))
    optimizer = torch.optim.Adam(policy.parameters(), lr=rate)
    baseline = None
    while not session.spent:
        distribution = policy()
        samples = distribution.sample((batch,))
        times, overflow = session.evaluate(samples.numpy()[:, unit])
        samples = samples[: len(times)]
        if not len(times):
            break
        cost = torch.tensor(np.log(times * np.where(overflow > 0, 10, 1)), dtype=torch.float32)
        baseline = cost.mean() if baseline is None else 0.9 * baseline + 0.1 * cost.mean()
        advantage = (baseline - cost) / (cost.std() + 1e-3)
        score = distribution.log_prob(samples).sum(dim=1)
        loss = -(advantage * score).mean() - entropy_weight * distribution.entropy().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="zoo:gnmt-4")
    parser.add_argument("--cluster", default="4xp100")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--evaluations", type=int, help="at most; then the result depends on the seed alone")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    problem = emplace.compile(arguments.model, arguments.cluster)
    expert = emplace.place(problem, "expert")
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # PyTorch 2 loads its compiler for the first one
    start = time.monotonic()
    learned = emplace.place(problem, reinforce, seconds=arguments.seconds, evaluations=arguments.evaluations,
                            seed=arguments.seed, progress=True)
    print(f"expert     {expert.time / 1e6:10.2f} ms  {'fits' if expert.fits else 'does not fit'}")
    print(f"reinforce  {learned.time / 1e6:10.2f} ms  {'fits' if learned.fits else 'does not fit'}"
          f"  after {learned.evaluations} evaluations in {time.monotonic() - start:.0f} s")
    print(f"{expert.time / learned.time:.3f} times as fast as the expert")


if __name__ == "__main__":
    main()
