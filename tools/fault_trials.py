#!/usr/bin/env python3
"""Kills the program at random moments, or lets its allocations or files fail, and looks at what is left.

    tools/fault_trials.py kill PROGRAM [--trials 500] [--seed 1]
    tools/fault_trials.py allocations PROGRAM LIBRARY [--trials 1000] [--seed 1] [--only ip]
    tools/fault_trials.py files PROGRAM LIBRARY [--trials 1000] [--seed 1]

kill: runs that learn or train are killed (SIGKILL), resumed, and mostly killed again; runs that write files are killed
over old ones. Files and folders are old or new and whole, checkpoints can be gone on from, curves have no gap. allocations:
the n-th operator new of a command fails, once or from then on (LIBRARY is tests/libfail_allocation.so of a build), and each
of the first that return nullptr: the program ends with exit code 0, 1 or 2, and 2 comes with a message that memory ended. files: the n-th call that writes a file fails (full disk, I/O
error), is interrupted or takes half (LIBRARY is tests/libfail_file_call.so): placements, timelines, pages, plans,
checkpoints, curves and policies are old or new and whole, and what was not written is said. As many trials as there are
cases try each of them; --skip N goes on where N were tried with the same seed. Ctrl-C prints what was tried. Exit code 1 where something else was found."""

import argparse
import collections
import errno
import itertools
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
import typing
import zlib

PROBLEM = ["family:ptb:sequence=3", "-c", "2xp100"]
LEARNED = ["post(samples=10)", "placeto(units=6)", "gdp(width=8,samples=10)", "hdp(hidden=8,groups=12,samples=10)",
           "spotlight(width=8,samples=10)"]
TRAIN = ["train", "-c", "2xp100", "--policy", "gdp", "--width", "8", "--layers", "1", "--steps", "100000", "--tasks-per-step",
         "1", "--graphs", "family:ptb:sequence=2,seed=0..1"]


class Trials:
    made: list["Trials"] = []

    def __init__(self, program: str, seed: int) -> None:
        self.program = str(pathlib.Path(program).resolve())
        self.random = random.Random(seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="emplace-faults-"))
        self.counts: collections.Counter[str] = collections.Counter()
        self.findings: list[str] = []
        Trials.made.append(self)

    def find(self, what: str) -> None:
        self.findings.append(what)
        print("FOUND:", what, flush=True)

    def run(self, arguments: list[str], kill_after: float | None = None, **more) -> subprocess.CompletedProcess | None:
        """None where it was killed."""
        process = subprocess.Popen([self.program, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
        try:
            out, err = process.communicate(timeout=kill_after if kill_after is not None else 300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if kill_after is None:
                self.find(f"{arguments}: did not end within 300 s")
            return None
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def expect_done(self, arguments: list[str], **more) -> None:
        result = self.run(arguments, **more)
        if result is not None and result.returncode != 0:
            self.find(f"{arguments}: exit code {result.returncode}: {result.stderr.decode()[-300:]}")

    def sweep(self) -> None:
        """Between trials; what was left half written is counted."""
        for path in self.folder.iterdir():
            if ".tmp-" in path.name:
                self.counts["temporary files left behind"] += 1
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def report(self) -> int:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, count in sorted(self.counts.items()):
            print(f"{count:7} {name}")
        print(f"{len(self.findings):7} findings")
        return 1 if self.findings else 0


def expect_curves(trials: Trials, what: str) -> None:
    """Rounds from the first on, each once; the last line may be cut off."""
    path = trials.folder / "curves/curves.csv"
    if not path.exists():
        return
    lines = path.read_text().split("\n")[:-1]
    rounds = [line.split(",")[0] for line in lines[1:]]
    learned = [int(number) for number in rounds]
    if learned != sorted(learned) or (learned and set(learned) != set(range(learned[0], learned[-1] + 1))):
        trials.find(f"{what}: rounds {rounds[:5]}...{rounds[-5:]} have a gap")


def expect_old_or_new(trials: Trials, name: str, old: bytes, what: str) -> None:
    path = trials.folder / name
    if not path.exists():
        trials.find(f"{what}: {name} is gone")
        return
    content = path.read_bytes()
    if content == old:
        return
    whole = content.rstrip().endswith(b"</html>") if name.endswith(".html") else is_json(content)
    if not whole:
        trials.find(f"{what}: {name} is half written: {len(content)} bytes")


def is_json(content: bytes) -> bool:
    try:
        json.loads(content)
        return True
    except ValueError:
        return False


def kill_learning(trials: Trials, longest: float) -> None:
    training = trials.random.random() < 0.2
    if training:
        command = [*TRAIN, "--checkpoint", "state", "--checkpoint-every", "50ms", "--curves", "curves", "-o", "policy"]
    else:
        command = ["place", *PROBLEM, "-p", trials.random.choice(LEARNED), "--checkpoint", "state", "--checkpoint-every",
                   "50ms", "--curves", "curves", "-o", "placement.json"]
    what = " ".join(command)
    for _ in range(trials.random.randint(1, 3)):
        # The state that there is must be one to go on from.
        resume = ["--resume"] if (trials.folder / "state").exists() else []
        after = trials.random.uniform(0.02, longest)
        result = trials.run([*command, "--time", "1h", *resume], kill_after=after)
        trials.counts["kills"] += 1
        if result is not None:
            trials.find(f"{what}: ended by itself: {result.returncode} {result.stderr.decode()[-300:]}")
        expect_curves(trials, what)
    resumed = (trials.folder / "state").exists()
    trials.counts["resumed" if resumed else "killed before the first checkpoint"] += 1
    # A training that ends before its first step, as on a machine with no time for it, has no policy to write.
    end = [*command, "--time", "20s" if training else "300ms", *(["--resume"] if resumed else [])]
    result = trials.run(end)
    if result is not None and training and b"there is no policy yet" in result.stderr:
        trials.counts["trainings that ended before their first step"] += 1
    elif result is not None and result.returncode != 0:
        trials.find(f"{end}: exit code {result.returncode}: {result.stderr.decode()[-300:]}")
    expect_curves(trials, what)


def kill_writing(trials: Trials, took: float) -> None:
    old = b'{"old": "' + b"x" * 100_000 + b'"}'
    names = ["placement.json", "trace.json", "page.html"]
    for name in names:
        (trials.folder / name).write_bytes(old)
    command = ["place", *PROBLEM, "-p", "heft", "-o", names[0], "--trace", names[1], "--report", names[2], "--time", "1s"]
    trials.run(command, kill_after=trials.random.uniform(0, took))
    trials.counts["kills"] += 1
    trials.counts["killed while files are written"] += 1
    for name in names:
        expect_old_or_new(trials, name, old, "place -o")


def kill_writing_folder(trials: Trials, command: list[str], took: float) -> None:
    put_old_parts(trials)
    trials.run(command, kill_after=trials.random.uniform(0, took))
    trials.counts["kills"] += 1
    trials.counts["killed while a folder is written"] += 1
    are_parts_new(trials, "export -f onnx-parts")
    for path in trials.folder.glob("parts.*"):
        trials.counts["temporary files left behind"] += 1
        shutil.rmtree(path)


def kill(arguments: argparse.Namespace) -> int:
    trials = Trials(arguments.program, arguments.seed)
    begin = time.monotonic()
    trials.expect_done(["place", *PROBLEM, "-p", "heft", "--trace", "t", "--report", "r.html", "--time", "1s"])
    writes = time.monotonic() - begin
    begin = time.monotonic()
    trials.expect_done(["place", *PROBLEM, "-p", LEARNED[0], "--evaluations", "50"])
    learns = time.monotonic() - begin
    trials.sweep()
    parts = Trials(arguments.program, arguments.seed)  # in a folder that is not swept
    parts.counts, parts.findings = trials.counts, trials.findings
    command = write_parts(parts)
    begin = time.monotonic()
    parts.expect_done(command)
    exports = time.monotonic() - begin
    while trials.counts["kills"] < arguments.trials:
        chosen = trials.random.random()
        if chosen < 0.6:
            kill_learning(trials, min(10.0, 2 * learns + 0.5))
        elif chosen < 0.8:
            kill_writing(trials, 1.2 * writes)
        else:
            kill_writing_folder(parts, command, 1.2 * exports)
        trials.sweep()
    shutil.rmtree(parts.folder, ignore_errors=True)
    return trials.report()


NOTHROW = 25

GRAPH = """{"format": "emplace.graph/1", "tensors": [{"bytes": 4000}, {"bytes": 1000}, {"shape": [2, 4], "dtype": "float32"}],
 "ops": [{"name": "w", "type": "parameter", "inputs": [], "outputs": [0]},
         {"name": "a", "type": "mm", "inputs": [0], "outputs": [1], "time_us": {"*": 100}},
         {"name": "b", "type": "relu", "inputs": [1], "outputs": [2], "time_us": {"*": 50}}]}"""


def allocation_commands(trials: Trials) -> list[list[str]]:
    (trials.folder / "m.json").write_text(GRAPH)
    trials.expect_done(["zoo", "export", "stacked-rnn:layers=1,sequence=2,batch=1,training=false", "-o", "m.onnx"])
    trials.expect_done(["zoo", "export", "stacked-rnn:layers=1,sequence=2,batch=1", "-o", "rnn.json.gz"])
    (trials.folder / "c.yaml").write_bytes(trials.run(["cluster", "show", "2x(2xa100-nvlink)@25GB/s"]).stdout)
    trials.expect_done(["place", "rnn.json.gz", "-c", "2xp100", "-p", "heft", "-o", "p.json"])
    (trials.folder / "i.json").write_text(
        '{"problem": {"name": "two", "edges": {"nodes": [[0, 1]], "costs": [[1, 2, 3, 4, 5, 6]]}, "nodes": {"intervals":'
        ' [[3, 9], null], "costs": [[7, 8], [1, 2, 3]], "usages": [[5, 6], [0, 0, 0]]}, "usage_limit": 50}}')
    place = ["place", "rnn.json.gz", "-c", "2xp100", "--threads", "2"]
    return [["info", "m.onnx"], ["info", "m.json"], ["cluster", "show", "c.yaml"], ["list"], ["--help"],
            ["simulate", "rnn.json.gz", "p.json", "-c", "2xp100"],
            ["simulate", "rnn.json.gz", "p.json", "-c", "2xp100", "--json"],
            ["zoo", "export", "stacked-rnn:layers=1,sequence=2,batch=1", "-o", "again.json.gz"],
            ["select", "i.json", "--time", "1s"], ["place", "m.json", "-c", "c.yaml", "-p", "heft"],
            [*place, "-p", "heft", "-o", "out.json", "--trace", "trace.json"], [*place, "-p", "auto", "--evaluations", "200"],
            [*place, "-p", "anneal", "--evaluations", "500", "--json"], [*place, "-p", "metis"],
            [*place, "-p", "dp"], [*place, "-p", "m_sct"], ["place", "m.json", "-c", "2xp100", "-p", "ip"],
            [*place, "-p", "ip", "--objective", "throughput", "--evaluations", "50"],
            [*place, "-p", "genetic", "--evaluations", "100"], [*place, "-p", "lns", "--time", "1s"],
            ["compare", "m.json", "-c", "c.yaml", "-p", "heuristic", "--json"],
            ["export", "rnn.json.gz", "p.json", "-c", "2xp100", "--format", "csv", "-o", "t.csv"]]


def fail_allocation(trials: Trials, command: list[str], library: str, variable: str, text: str) -> None:
    result = trials.run(command, env={"LD_PRELOAD": library, variable: text, "PATH": "/usr/bin"})
    trials.counts["trials"] += 1
    if result is None:
        return
    what = f"{variable}={text}, {' '.join(command)}"
    code, said = result.returncode, result.stderr.decode(errors="replace")
    trials.counts[f"exit code {code}"] += 1
    if code not in (0, 1, 2):
        trials.find(f"{what}: exit code {code}: {said[-200:]}")
    elif code == 2 and "memory" not in said:
        trials.find(f"{what}: exit code 2, and no word of memory: {said[-200:]}")
    # What is blamed on a file, or on the program, that memory is to blame for.
    elif re.search("malformed|internal error|corrupt", said):
        trials.find(f"{what}: {said[-200:]}")


def allocations(arguments: argparse.Namespace) -> int:
    trials = Trials(arguments.program, arguments.seed)
    library = str(pathlib.Path(arguments.library).resolve())
    commands = [command for command in allocation_commands(trials) if arguments.only in command or not arguments.only]
    each = max(1, arguments.trials // len(commands))
    for command in commands:
        counter = trials.folder / "count"
        usual = trials.run(command, env={"LD_PRELOAD": library, "EMPLACE_COUNT_ALLOCATIONS": str(counter), "PATH": "/usr/bin"})
        if usual is None or usual.returncode != 0 or not counter.exists():
            trials.find(f"{command}: does not run: {usual and usual.stderr.decode()[-300:]}")
            continue
        most, nothrow = (int(number) for number in counter.read_text().split())
        for i in range(min(each, 2 * most)):
            # The first ones, late ones (early ones are those of every command) and any; each way in turn. Where there are
            # enough trials, all of them.
            if i < each // 4 or each >= 2 * most:
                at = i // 2
            else:
                at = trials.random.randrange(0 if i % 4 < 2 else 7 * most // 8, most)
            fail_allocation(trials, command, library, "EMPLACE_FAIL_ALLOCATION", f"{at}+" if i % 2 else f"{at}")
        # Those that return nullptr: all of a reader's, which are the first.
        for at in range(min(max(each, NOTHROW), nothrow)):
            fail_allocation(trials, command, library, "EMPLACE_FAIL_NOTHROW", f"{at}")
    return trials.report()


class Writing(typing.NamedTuple):
    """A command and what it writes: whole files over old ones, and files that begin with the run."""
    command: list[str]
    over_old: list[str]
    new: list[str] = []
    resumed: list[str] = []  # of the new ones: what a run goes on from
    folder: str = ""  # over an old one


def writings(trials: Trials) -> list[Writing]:
    (trials.folder / "m.json").write_text(GRAPH)
    trials.expect_done(["zoo", "export", "stacked-rnn:layers=1,sequence=2,batch=2", "-o", "rnn.json.gz"])
    model = ["rnn.json.gz", "-c", "2xp100"]
    learned = ["place", "m.json", "-c", "2xp100", "-p", "post(samples=4,polish=0)", "--evaluations", "12"]
    train = ["2" if word == "100000" else word for word in TRAIN]
    return [Writing(["place", *model, "-p", "heft", "-o", "placement.json", "--trace", "trace.json", "--report", "page.html"],
                    ["placement.json", "trace.json", "page.html"]),
            Writing(["partition", *model, "--method", "tofu", "--evaluations", "10", "-o", "plan.json", "--graph", "divided.json",
                     "--report", "page.html"], ["plan.json", "divided.json", "page.html"]),
            Writing(["place", *model, "-p", "anneal", "--evaluations", "300", "--checkpoint", "state", "--checkpoint-every",
                     "1ms", "-o", "placement.json"], ["placement.json"], ["state"], ["state"]),
            Writing([*learned, "--checkpoint", "state", "--checkpoint-every", "1ms", "--curves", "curves", "-o",
                     "placement.json"], ["placement.json"], ["state", "curves/curves.csv"]),
            Writing([*train, "--curves", "curves", "-o", "policy"],
                    ["policy"], ["curves/curves.csv"]),
            Writing(write_parts(trials), [], folder="parts")]


def write_parts(trials: Trials) -> list[str]:
    """Two exports, whose folders differ; returns the command of the second."""
    trials.expect_done(["zoo", "export", "stacked-rnn:layers=1,sequence=2,batch=1,training=false", "-o", "m.onnx"])
    for devices in ("1xp100", "2xp100"):
        trials.expect_done(["place", "m.onnx", "-c", devices, "-p", "round_robin", "-o", f"{devices}.json"])
        (trials.folder / "parts").mkdir(exist_ok=True)
        command = ["export", "m.onnx", f"{devices}.json", "-c", devices, "-f", "onnx-parts", "-o", "parts"]
        trials.expect_done(command)
        shutil.rmtree(trials.folder / f"parts-{devices}", ignore_errors=True)
        shutil.copytree(trials.folder / "parts", trials.folder / f"parts-{devices}")
    if contents(trials.folder / "parts-1xp100") == contents(trials.folder / "parts-2xp100"):
        trials.find("the parts of two placements are equal")
    return command


def contents(folder: pathlib.Path) -> dict[str, bytes] | None:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else None


def put_old_parts(trials: Trials) -> None:
    shutil.rmtree(trials.folder / "parts", ignore_errors=True)
    shutil.copytree(trials.folder / "parts-1xp100", trials.folder / "parts")


def are_parts_new(trials: Trials, what: str) -> bool:
    found = contents(trials.folder / "parts")
    is_new = found == contents(trials.folder / "parts-2xp100")
    if not is_new and found != contents(trials.folder / "parts-1xp100"):
        trials.find(f"{what}: the folder is neither old nor new: {sorted(found) if found else 'gone'}")
    return is_new


def is_whole(name: str, content: bytes) -> bool:
    if name.endswith(".html"):
        return content.rstrip().endswith(b"</html>")
    if name.endswith(".json"):
        return is_json(content)
    if name.endswith(".csv"):
        return b"\n" in content or not content  # the last row may be cut off
    # Checkpoints of what learns, and policies, end with the checksum of what is before it.
    begin = max(content.find(b"emplace checkpoint\n"), content.find(b"emplace policy\n"))
    body = content[max(0, begin):]
    return len(body) > 8 and int.from_bytes(body[-8:], "little") == zlib.crc32(body[:-8])


def begin_anew(trials: Trials) -> None:
    for name in ("state", "state.lock", "curves"):
        path = trials.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def fail_file_call(trials: Trials, writing: Writing, library: str, fault: str) -> None:
    old = b"old"
    begin_anew(trials)
    for name in writing.over_old:
        (trials.folder / name).write_bytes(old)
    if writing.folder:
        put_old_parts(trials)
    result = trials.run(writing.command, env={"LD_PRELOAD": library, "EMPLACE_FAIL_FILE_CALL": fault, "PATH": "/usr/bin"})
    trials.counts["trials"] += 1
    if result is None:
        return
    what = f"EMPLACE_FAIL_FILE_CALL={fault}, {' '.join(writing.command)}"
    said = result.stderr.decode()
    trials.counts[f"exit code {result.returncode}"] += 1
    if result.returncode not in (0, 2):
        trials.find(f"{what}: exit code {result.returncode}: {said[-200:]}")
    missing = []
    for name in [*writing.over_old, *writing.new]:
        path = trials.folder / name
        content = path.read_bytes() if path.exists() else old
        if content == old:
            missing.append(name)
        elif name in writing.resumed:
            trials.expect_done([*writing.command, "--resume"])
        elif not is_whole(name, content):
            trials.find(f"{what}: {name} is half written: {len(content)} bytes")
        if not path.exists() and name in writing.over_old:
            trials.find(f"{what}: {name} is gone")
    if writing.folder and not are_parts_new(trials, what):
        missing.append(writing.folder)
    error = int(fault.split(":")[1])
    if error in (0, errno.EINTR):
        if missing or result.returncode != 0:
            trials.find(f"{what}: exit code {result.returncode}, without {missing}: {said[-200:]}")
    elif missing and not os.strerror(error) in said:
        trials.find(f"{what}: {missing} not written without a word: {said[-200:]}")
    elif missing and set(missing) & {*writing.over_old, writing.folder} and result.returncode == 0:
        trials.find(f"{what}: {missing} not written, and exit code 0: {said[-200:]}")
    for path in trials.folder.rglob("*.tmp-*"):
        trials.find(f"{what}: {path.name} is left")
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def files(arguments: argparse.Namespace) -> int:
    trials = Trials(arguments.program, arguments.seed)
    library = str(pathlib.Path(arguments.library).resolve())
    commands = writings(trials)
    cases = []
    for writing in commands:
        counter = trials.folder / "count"
        begin_anew(trials)
        trials.expect_done(writing.command, env={"LD_PRELOAD": library, "EMPLACE_COUNT_FILE_CALLS": str(counter),
                                                 "PATH": "/usr/bin"})
        most = int(counter.read_text())
        trials.counts[f"calls of {writing.command[0]} ... {writing.command[-1]}"] = most
        faults = [f"{at}{then}:{error}" for at in range(most) for error in (errno.ENOSPC, errno.EIO, errno.EINTR, 0)
                  for then in ("", "+") if (error, then) != (errno.EINTR, "+")]
        cases.append([(writing, fault) for fault in trials.random.sample(faults, len(faults))])
    # In turn, so that few trials are some of each command.
    ordered = [case for turn in itertools.zip_longest(*cases) for case in turn if case is not None]
    trials.counts["cases"] = len(ordered)
    trials.counts["cases of earlier runs"] = arguments.skip
    for writing, fault in ordered[arguments.skip:arguments.skip + arguments.trials]:
        fail_file_call(trials, writing, library, fault)
    return trials.report()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    for name, function, trials in (("kill", kill, 500), ("allocations", allocations, 1000), ("files", files, 1000)):
        kind = kinds.add_parser(name)
        kind.add_argument("program")
        if name != "kill":
            kind.add_argument("library")
        if name == "allocations":
            kind.add_argument("--only", default="", help="commands with this word")
        kind.add_argument("--trials", type=int, default=trials)
        if name == "files":
            kind.add_argument("--skip", type=int, default=0, help="begin behind so many cases, which another run has tried")
        kind.add_argument("--seed", type=int, default=1)
        kind.set_defaults(function=function)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return arguments.function(arguments)
    except KeyboardInterrupt:
        print("interrupted; until then:")
        return Trials.made[0].report() if Trials.made else 1


if __name__ == "__main__":
    sys.exit(main())
