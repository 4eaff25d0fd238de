#!/usr/bin/env python3
"""Runs emplace on several ranks, again and again, and kills or stops one of them at a random moment:

    bench/dist_faults.py build/emplace --trials 200

A worker that is killed or stopped: the run ends in time, with exit code 0 and an answer that is at least as good as the
best that was known before (under --evaluations, and of a training: the very answer of an undisturbed run). Rank 0
killed: --resume goes on, to that answer (under --time: to one that is no worse than what was known an interval before).
mpirun or the launcher killed: no process is left behind. Prints a row for each sort of trial, in how many there was an
answer to compare with, and what went wrong."""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MODEL = ["zoo:inception-v3:batch=32", "-c", "4xp100"]
RANKS = 3
LOST_AFTER = 5
# How many times as long everything may take, where the machine has other work.
patience = 1


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def rank_of(pid):
    try:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    found = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", environment)
    return int(found[1]) if found else None


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


class Run:
    """One command, with the processes that it has started."""

    def __init__(self, emplace, arguments):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([emplace, *arguments], stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.mpirun = None
        self.ranks = {}

    def find_ranks(self, count, seconds=30):
        end = time.time() + patience * seconds
        while time.time() < end and self.process.poll() is None:
            for mpirun in children(self.process.pid):
                self.mpirun = mpirun
                self.ranks = {rank_of(pid): pid for pid in children(mpirun) if rank_of(pid) is not None}
            if len(self.ranks) == count:
                return True
            time.sleep(0.01)
        return False

    def said(self):
        self.errors.flush()
        return pathlib.Path(f"/proc/self/fd/{self.errors.fileno()}").read_text()

    def wait(self, seconds):
        """The exit code; nothing where it did not end in time."""
        try:
            self.output, _ = self.process.communicate(timeout=patience * seconds)
        except subprocess.TimeoutExpired:
            return None
        return self.process.returncode

    def state(self):
        """Of the processes that are still there: what they wait for, for people."""
        lines = [self.said()[-300:]]
        for name, pid in [("emplace", self.process.pid), ("mpirun", self.mpirun),
                          *((f"rank {rank}", pid) for rank, pid in self.ranks.items())]:
            if not pid or not alive(pid):
                lines.append(f"{name} has ended")
                continue
            for thread in sorted(os.listdir(f"/proc/{pid}/task")):
                folder = pathlib.Path(f"/proc/{pid}/task/{thread}")
                state = folder.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0]
                waits = folder.joinpath("wchan").read_text()
                lines.append(f"{name}, thread {thread}: {state} {waits}")
            if shutil.which("gdb"):
                gdb = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"]
                try:
                    lines.append(subprocess.run(gdb, capture_output=True, text=True, timeout=300).stdout)
                except subprocess.TimeoutExpired:
                    lines.append("gdb did not end either")
        return "\n".join(lines)

    def leftover(self, seconds=6):
        pids = [self.process.pid, self.mpirun, *self.ranks.values()]
        end = time.time() + patience * seconds
        while time.time() < end and any(pid and alive(pid) for pid in pids):
            time.sleep(0.05)
        return [pid for pid in pids if pid and alive(pid)]

    def clean(self):
        for pid in [*self.ranks.values(), self.mpirun, self.process.pid]:
            if pid and alive(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.errors.close()


SECONDS = 3
COMMANDS = {
    "place --time": ["place", *MODEL, "--time", f"{SECONDS}s"],
    "place --evaluations": ["place", *MODEL, "--evaluations", "5000", "--islands", "6"],
    "place lns --time": ["place", *MODEL, "-p", "lns", "--time", f"{SECONDS}s"],
    "compare": ["compare", *MODEL, "-p", "heuristic,anneal,hill_climb", "--time", "1s"],
    "train gdp": ["train", "--policy", "gdp", "--graphs", "family:ptb:seed=0..5", "-c", "2xp100", "4xp100",
                  "--width", "16", "--layers", "1", "--imitate", "anneal", "--imitate-evaluations", "500",
                  "--imitation-steps", "6", "--steps", "10", "--tasks-per-step", "6"],
    "train placeto": ["train", "--policy", "placeto", "--graphs", "family:ptb:seed=0..3", "-c", "2xp100",
                      "--width", "8", "--layers", "1", "--imitate", "expert", "--imitation-steps", "4",
                      "--steps", "4", "--tasks-per-step", "4"],
    "place learned": ["place", *MODEL, "-p", "colocrl(width=8,samples=10)", "--evaluations", "60"],
    "place learned, controllers": ["place", *MODEL, "-p", "colocrl(width=8,samples=10,controllers=3)", "--evaluations",
                                   "60"],
    "place learned, workers": ["place", *MODEL, "-p", "colocrl(width=8,samples=10,controllers=2,workers=1)",
                               "--evaluations", "60"],
    "place learned, controllers --time": ["place", *MODEL, "-p", "colocrl(width=8,samples=10,controllers=3)", "--time",
                                          f"{2 * SECONDS}s"],
}
# Whose answer does not depend on who was lost.
FIXED = ["place --evaluations", "place learned", "place learned, controllers", "place learned, workers", "train gdp",
         "train placeto"]


def arguments_of(name, folder, more=()):
    output = ["-o", os.path.join(folder, "policy")] if name.startswith("train") else []
    return [*COMMANDS[name], "--threads", "1", "--ranks", str(RANKS), "--lost-after", f"{LOST_AFTER}s", "--json",
            *output, *more]


def answer_of(name, output, folder):
    """The answer, and how many ranks were lost: a step time, the policy's hash."""
    answer = json.loads(output)
    lost = answer["ranks"]["lost"]
    if name.startswith("train"):
        return hashlib.sha256(pathlib.Path(folder, "policy").read_bytes()).hexdigest()[:16], lost
    if name == "compare":
        return min(run["step_ns"] for run in answer["runs"] if run.get("fits", True)), lost
    return answer["step_ns"], lost


class Undisturbed:
    """What the commands with a fixed answer answer, and how long they take."""

    def __init__(self, emplace):
        self.emplace = emplace
        self.known = {}

    def of(self, name):
        if name not in self.known:
            with tempfile.TemporaryDirectory() as folder:
                begin = time.time()
                run = subprocess.run([self.emplace, *arguments_of(name, folder)], capture_output=True, text=True)
                if run.returncode != 0:
                    sys.exit(run.stderr)
                self.known[name] = (answer_of(name, run.stdout, folder)[0], time.time() - begin)
        return self.known[name]


def best_said(text):
    """The last best step time of the progress lines, in nanoseconds."""
    unit = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
    found = re.findall(r"best ([0-9.]+) (ns|us|µs|ms|s)\b", text)
    return float(found[-1][0]) * unit[found[-1][1]] if found else None


# Of a trial that was as it should be: how many ranks were lost, and whether there was an answer to compare with.
Fine = collections.namedtuple("Fine", "lost compared", defaults=(0, 1))
IN_VAIN = Fine(compared=0)  # the run was done before


def worker_trial(emplace, name, how, rng, undisturbed, folder):
    expected, seconds = undisturbed.of(name) if name in FIXED else (None, SECONDS + 1)
    run = Run(emplace, arguments_of(name, folder))
    try:
        if not run.find_ranks(RANKS):
            return "the ranks did not start: " + run.said()[-300:]
        time.sleep(rng.uniform(0, seconds))
        best = best_said(run.said())
        victim = run.ranks[rng.randrange(1, RANKS)]
        if alive(victim):
            os.kill(victim, how)
        # A rank that is lost before it has begun is waited for longest.
        code = run.wait(3 * seconds + 2 * LOST_AFTER + 60)
        if code is None:
            return "did not end in time: " + run.state()
        if code != 0:
            return f"exit code {code}: " + run.said()[-300:]
        answer, lost = answer_of(name, run.output, folder)
        if lost > 1 and "not all ranks have started" not in run.said():
            return f"{lost} ranks lost"
        if expected and answer != expected:
            return f"another answer: {answer} instead of {expected}"
        if best and answer > best * 1.001:
            return f"the answer, {answer}, is worse than what was known: {best}"
        if how == signal.SIGSTOP and alive(victim):
            os.kill(victim, signal.SIGCONT)
        if run.leftover():
            return f"left behind: {run.leftover()}"
        return Fine(lost, 1 if expected or best else 0)
    finally:
        run.clean()


def leader_trial(emplace, name, rng, undisturbed, folder):
    expected, _ = undisturbed.of(name)
    checkpoint = os.path.join(folder, "checkpoint")
    more = ["--checkpoint", checkpoint, "--checkpoint-every", "1s"]
    run = Run(emplace, arguments_of(name, folder, more))
    try:
        if not run.find_ranks(RANKS):
            return "the ranks did not start"
        end = time.time() + patience * 60
        while not os.path.exists(checkpoint) and time.time() < end and run.process.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 2))
        if not alive(run.ranks[0]):
            return IN_VAIN
        os.kill(run.ranks[0], signal.SIGKILL)
        code = run.wait(60)
        if code == 0 and not run.find_ranks(1, 0.1):
            return IN_VAIN
        if code != 137:
            return f"without rank 0: exit code {code}"
        if run.leftover(LOST_AFTER + 6):
            return "left behind"
    finally:
        run.clean()
    again = subprocess.run([emplace, *arguments_of(name, folder, [*more, "--resume"])], capture_output=True, text=True)
    if again.returncode != 0:
        return "not resumed: " + again.stderr[-300:]
    answer = answer_of(name, again.stdout, folder)[0]
    return Fine() if answer == expected else f"resumed to another answer: {answer} instead of {expected}"


def timed_leader_trial(emplace, rng, folder):
    """What was said to be the best, up to an interval before rank 0 was killed, is not lost."""
    name, seconds, interval, slack = "place --time", 3 * SECONDS, 0.5, 1.5
    files = ["--checkpoint", os.path.join(folder, "checkpoint"), "--checkpoint-every", f"{interval}s"]

    def arguments(time_limit, more=()):
        given = arguments_of(name, folder, [*files, *more])
        given[given.index("--time") + 1] = f"{time_limit}s"
        return given

    run = Run(emplace, arguments(seconds))
    heard = []
    try:
        if not run.find_ranks(RANKS):
            return "the ranks did not start"
        # Before, there is nothing to go on from.
        end = time.time() + patience * 60
        while not os.path.exists(files[1]) and time.time() < end and run.process.poll() is None:
            time.sleep(0.05)
        # Not before something has been known for long enough: else any answer would do.
        later = rng.uniform(0, 1.5)
        while alive(run.ranks[0]):
            heard.append((time.time(), best_said(run.said())))
            first = next((when for when, best in heard if best), None)
            if first and time.time() > first + interval + slack + later:
                break
            time.sleep(0.05)
        if not alive(run.ranks[0]):
            return IN_VAIN
        os.kill(run.ranks[0], signal.SIGKILL)
        known = [best for when, best in heard if best and when < time.time() - interval - slack]
        code = run.wait(60)
        if code == 0:
            return IN_VAIN
        if code != 137:
            return f"without rank 0: exit code {code}"
    finally:
        run.clean()
    again = subprocess.run([emplace, *arguments(0.2, ["--resume"])], capture_output=True, text=True)
    if again.returncode != 0:
        return "not resumed: " + again.stderr[-300:]
    answer = answer_of(name, again.stdout, folder)[0]
    if answer > min(known) * 1.001:
        return f"the answer, {answer}, is worse than what was known: {min(known)}"
    return Fine()


def starter_trial(emplace, who, rng, folder):
    run = Run(emplace, arguments_of("place --time", folder))
    try:
        if not run.find_ranks(RANKS):
            return "the ranks did not start"
        time.sleep(rng.uniform(0, SECONDS))
        os.kill(run.mpirun if who == "mpirun" else run.process.pid, signal.SIGKILL)
        left = run.leftover(LOST_AFTER + 6)
        return f"left behind: {left}" if left else Fine()
    finally:
        run.clean()


def table(counts, failures):
    lines = [f"{'trial':48} {'trials':>6} {'fine':>5} {'compared':>8} {'lost ranks':>10} {'longest':>8}"]
    for title, row in counts.items():
        lines.append(f"{title:48} {row['trials']:6} {row['fine']:5} {row['compared']:8} {row['lost']:10} "
                     f"{row['longest']:7.1f}s")
    done = sum(row["trials"] for row in counts.values())
    return "\n".join([*lines, f"{done - len(failures)} of {done} fine", *failures, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emplace")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=1,
                        help="how many times as long a run may take, where the machine has other work")
    parser.add_argument("--brief", action="store_true", help="one trial of each sort, of place alone")
    parser.add_argument("--out", default="", help="a file for the table of what is done, whenever it is cut off")
    parser.add_argument("--only", nargs="*", default=[""], help="sorts of trials whose name has one of these")
    options = parser.parse_args()
    global patience
    patience = options.patience
    rng = random.Random(options.seed)
    undisturbed = Undisturbed(options.emplace)
    sorts = {}
    for name in COMMANDS:
        for how in (signal.SIGKILL, signal.SIGSTOP):
            title = f"{name}: a worker {'killed' if how == signal.SIGKILL else 'stopped'}"
            sorts[title] = lambda folder, name=name, how=how: worker_trial(options.emplace, name, how, rng,
                                                                           undisturbed, folder)
    for name in FIXED:
        sorts[f"{name}: rank 0 killed, then --resume"] = lambda folder, name=name: leader_trial(
            options.emplace, name, rng, undisturbed, folder)
    sorts["place --time: rank 0 killed, then --resume"] = lambda folder: timed_leader_trial(
        options.emplace, rng, folder)
    sorts["mpirun killed"] = lambda folder: starter_trial(options.emplace, "mpirun", rng, folder)
    sorts["the launcher killed"] = lambda folder: starter_trial(options.emplace, "launcher", rng, folder)
    if options.brief:
        sorts = {title: trial for title, trial in sorts.items()
                 if not any(word in title for word in ("lns", "compare", "train", "learned"))}
    sorts = {title: trial for title, trial in sorts.items() if any(word in title for word in options.only)}
    counts = collections.defaultdict(collections.Counter)
    failures = []
    # What was done until then is printed all the same.
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    for trial in range(options.trials):
        if stopped:
            break
        title = list(sorts)[trial % len(sorts)]
        for name in FIXED:
            if title.startswith(name):
                undisturbed.of(name)
        begin = time.time()
        with tempfile.TemporaryDirectory() as folder:
            result = sorts[title](folder)
        seconds = time.time() - begin
        counts[title]["trials"] += 1
        counts[title]["longest"] = max(counts[title]["longest"], seconds)
        if isinstance(result, str):
            failures.append(f"trial {trial}, {title}: {result}")
            print(failures[-1], file=sys.stderr, flush=True)
        else:
            counts[title]["fine"] += 1
            counts[title]["lost"] += result.lost
            counts[title]["compared"] += result.compared
        if options.out:
            pathlib.Path(options.out).write_text(table(counts, failures))
    print(table(counts, failures), end="")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
