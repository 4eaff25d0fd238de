"""Which modules stay on the GPU when the others' weights are sent to it each time they are needed.

This is what accelerate does with modules that are mapped to "cpu". Everything is computed on the
GPU, one module after another, so a pass takes the GPU's time plus that of sending what does not
stay. A module's weights are sent when it is called, so beside what stays there must be room for the
largest module that is sent. Exact for each size of that largest module, up to a 4096th of the
memory: a knapsack.
"""
from dataclasses import dataclass

STEPS = 4096


@dataclass
class Part:
    """Modules that stay or go together."""
    key: str
    resident_bytes: int   # tied weights once
    sent_bytes: int       # for each module that uses them
    sent_tensors: int
    largest: int          # of its modules


def send_seconds(part, bandwidth, per_tensor):
    return part.sent_bytes / bandwidth + part.sent_tensors * per_tensor


def choose_resident(parts, memory, bandwidth, per_tensor):
    """(keys that stay, seconds of sending the others), or None where not even one module fits."""
    if sum(part.resident_bytes for part in parts) <= memory:
        return {part.key for part in parts}, 0.0
    best = None
    for room in sorted({part.largest for part in parts}):
        must = [part for part in parts if part.largest > room]
        may = [part for part in parts if part.largest <= room]
        left = memory - room - sum(part.resident_bytes for part in must)
        if left < 0:
            continue
        stay = {part.key for part in must} | _knapsack(may, left, bandwidth, per_tensor)
        seconds = sum(send_seconds(part, bandwidth, per_tensor) for part in parts
                      if part.key not in stay)
        if best is None or seconds < best[1]:
            best = stay, seconds
    return best


def _knapsack(parts, capacity, bandwidth, per_tensor):
    """Keys of those whose staying saves most."""
    unit = max(1, -(-capacity // STEPS))
    steps = capacity // unit
    gains = [0.0] * (steps + 1)
    taken = []
    for part in parts:
        size = -(-part.resident_bytes // unit)
        gain = send_seconds(part, bandwidth, per_tensor)
        chosen = bytearray(steps + 1)
        for used in range(steps, size - 1, -1):
            if gains[used - size] + gain > gains[used]:
                gains[used] = gains[used - size] + gain
                chosen[used] = 1
        taken.append(chosen)
    keys, used = set(), max(range(steps + 1), key=gains.__getitem__)
    for part, chosen in zip(reversed(parts), reversed(taken)):
        if chosen[used]:
            keys.add(part.key)
            used -= -(-part.resident_bytes // unit)
    return keys
