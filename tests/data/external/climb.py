#!/usr/bin/env python3
"""An external placer (docs/external.md): hill climbing by moves of single groups."""
import json
import random
import sys


def say(message):
    print(json.dumps(message), flush=True)


def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)  # nobody is there any more
    return json.loads(line)


def value(answer):
    """What is less is better; nothing where there is no value."""
    if "step_ns" not in answer and "period_ns" not in answer:
        return None
    return answer["shortfall_bytes"], answer.get("step_ns", answer.get("period_ns"))


def first_placements(problem):
    """Everything on one device, where that may be; else each group where it first may be."""
    groups = problem["groups"]
    for device in range(len(problem["devices"])):
        if all(device in group["devices"] for group in groups):
            yield [device] * len(groups)
    yield [group["devices"][0] for group in groups]


def main():
    problem = hear()
    rng = random.Random(problem["seed"])
    starts = list(problem["starts"]) + list(first_placements(problem))
    best, placement = None, starts[0]
    movable = [i for i, group in enumerate(problem["groups"]) if len(group["devices"]) > 1]
    say({"evaluate": starts})
    answers = hear()
    for start, answer in zip(starts, answers["results"]):
        now = value(answer)
        if now is not None and (best is None or now < best):
            best, placement = now, start
    while "stop" not in answers and movable:
        group = rng.choice(movable)
        moved = list(placement)
        moved[group] = rng.choice(problem["groups"][group]["devices"])
        say({"evaluate": moved})
        answers = hear()
        now = value(answers)
        if now is not None and (best is None or now <= best):
            best, placement = now, moved
    say({"place": placement})


main()
