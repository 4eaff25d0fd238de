"""In which order the ops of a step are issued."""
import heapq

from ._rewrite import is_random


def issue_order(calls, starts):
    """The calls by `starts`, which has a time for each, as far as each may follow what it reads. Random
    ops stay in the order of the capture, which numbers are drawn in; so do ops with equal times."""
    position = {call: i for i, call in enumerate(calls)}
    after, missing, drawn = {}, dict.fromkeys(calls, 0), None
    for call in calls:
        before = {read for read in call.all_input_nodes if read in position}
        if is_random(call):
            before |= {drawn} if drawn is not None else set()
            drawn = call
        missing[call] = len(before)
        for read in before:
            after.setdefault(read, []).append(call)
    ready = [(starts[call], position[call], call) for call in calls if not missing[call]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, _, call = heapq.heappop(ready)
        order.append(call)
        for follower in after.get(call, ()):
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, (starts[follower], position[follower], follower))
    return order
