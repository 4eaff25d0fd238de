"""Searches: answers, budgets, progress, interruption, functions as placers."""

import io
import os
import signal
import sys
import threading
import time
import types

import numpy as np
import pytest

import emplace


def test_the_best_is_found_and_proven(fork):
    answer = emplace.place(fork, evaluations=2000)
    assert answer.time == 111_000 and answer.fits and answer.optimal and answer.gap == 0
    assert answer.placement.dtype == np.int32 and len(answer.placement) == 4
    assert answer.to_dict()["step_ns"] == 111_000 and not answer.interrupted
    assert "What limits the step" in answer.explanation()
    assert "<svg" in answer._repr_html_() and "gpu1" in answer._repr_html_()


def test_options_are_arguments(gnmt):
    answer = emplace.place(gnmt, "metis", imbalance=1.2)
    assert answer.placer == "metis(imbalance=1.2)"
    assert emplace.place(gnmt, emplace.placers.metis(imbalance=1.2)).time == answer.time
    with pytest.raises(emplace.Error, match="'speed'"):
        emplace.place(gnmt, "heft", speed=1)
    with pytest.raises(TypeError, match="no option 'speed'"):
        emplace.placers.heft(speed=1)
    with pytest.raises(emplace.Error, match="options go with one placer"):
        emplace.place(gnmt, ["heft", "metis"], imbalance=1.2)
    with pytest.raises(emplace.Error, match="did you mean 'heft'"):
        emplace.place(gnmt, "hefft")
    assert "imbalance" in emplace.placers.metis.__doc__


def test_every_placer_has_a_function_and_no_option_hides_an_argument():
    import inspect

    own = set(inspect.signature(emplace.place).parameters) - {"options"}
    for info in emplace.list_placers():
        assert getattr(emplace.placers, info.key).__name__ == info.key
        hidden = own & {option.name for option in info.options}
        # These can be given in the spec: 'post(samples=8)'.
        assert hidden <= {"samples", "seed", "learning", "evaluations", "starts", "scheduler", "placer"}, info.key


def test_the_same_seed_gives_the_same_answer(gnmt):
    runs = [emplace.place(gnmt, "mcmc", evaluations=500, seed=3, threads=t).placement for t in (1, 2)]
    assert (runs[0] == runs[1]).all()


def test_answers_are_saved_and_read(gnmt, tmp_path):
    answer = emplace.place(gnmt, "heft")
    answer.save(tmp_path / "p.json")
    again = emplace.read_placement(str(tmp_path / "p.json"), gnmt)
    assert again.time == answer.time and (again.placement == answer.placement).all()
    assert os.listdir(tmp_path) == ["p.json"]
    with pytest.raises(emplace.Error, match="nowhere"):
        answer.save(tmp_path / "nowhere" / "p.json")


def test_progress_is_told(gnmt):
    lines = []
    emplace.place(gnmt, "mcmc", seconds=1, progress=lambda line, seconds: lines.append((line, seconds)))
    assert lines and "mcmc" in lines[-1][0] and lines[-1][1] > 0


def on_a_terminal(monkeypatch, term):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "60")
    return terminal


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_progress_on_a_terminal_is_one_line_that_goes(gnmt, monkeypatch, term):
    terminal = on_a_terminal(monkeypatch, term)
    emplace.place(gnmt, "mcmc", seconds=1, progress=True)
    text = terminal.getvalue()
    assert "] 0 of 1 s" in text or "] 1 of 1 s" in text
    assert "\n" not in text and ("\x1b" in text) == (term == "xterm")
    lines = text.replace("\x1b[K", "").split("\r")
    assert all(len(line) < 60 for line in lines) and lines[-1].strip() == ""


def test_progress_elsewhere_is_nothing(gnmt, capsys):
    emplace.place(gnmt, "mcmc", seconds=0.5, progress=True)
    assert capsys.readouterr() == ("", "")


def test_progress_in_a_notebook_is_a_bar(gnmt, monkeypatch):
    shown = []

    class ZMQInteractiveShell:
        pass

    class Handle:
        def update(self, content, raw):
            shown.append(content)

    display = types.ModuleType("IPython.display")
    display.display = lambda content, raw, display_id: Handle()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = ZMQInteractiveShell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    emplace.place(gnmt, "mcmc", seconds=1, progress=True)
    assert any("<progress" in content["text/html"] for content in shown)
    assert shown[-1] == {"text/plain": "", "text/html": ""}


def test_what_a_listener_raises_ends_the_search(gnmt):
    def listener(line, seconds):
        raise RuntimeError("enough")

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        emplace.place(gnmt, "mcmc", seconds=60, progress=listener)
    assert time.monotonic() - start < 30


def test_ctrl_c_ends_a_search_with_the_best_so_far(gnmt):
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    answer = emplace.place(gnmt, "mcmc", seconds=60)
    assert answer.interrupted and time.monotonic() - start < 30
    emplace.simulate(gnmt, answer)


def interrupt_after(seconds):
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_ends_a_python_placer_that_does_not_ask(gnmt):
    def stubborn(session):
        session.evaluate(np.zeros((1, session.num_groups), dtype=np.int32))
        while True:
            sum(range(1000))

    interrupt_after(0.5)
    start = time.monotonic()
    answer = emplace.place(gnmt, stubborn, seconds=60)
    assert answer.interrupted and time.monotonic() - start < 30
    assert (answer.placement == 0).all()


def test_ctrl_c_before_there_is_an_answer_is_an_exception(gnmt):
    def idle(session):
        while True:
            time.sleep(0.01)

    interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        emplace.place(gnmt, idle, seconds=60)


def test_a_python_placer_that_asks_is_left_to_end_by_itself(gnmt):
    ended = []

    def polite(session):
        while not session.spent:
            session.evaluate(np.zeros((1, session.num_groups), dtype=np.int32))
        ended.append(True)

    interrupt_after(0.3)
    assert emplace.place(gnmt, polite, seconds=60).interrupted and ended == [True]


def test_forked_processes_search_too(gnmt):
    emplace.place(gnmt, "mcmc", evaluations=300, threads=2)
    emplace.Environment(gnmt, threads=2).evaluate(np.zeros((100, gnmt.groups.max() + 1), dtype=np.int32))
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        try:
            alone = emplace.place(gnmt, "mcmc", evaluations=300, threads=2)
            times, _ = emplace.Environment(gnmt, threads=2).evaluate(
                np.zeros((100, gnmt.groups.max() + 1), dtype=np.int32))
            os._exit(0 if alone.fits and times[0] > 0 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_other_threads_go_on(gnmt):
    count, stop = 0, threading.Event()

    def counting():
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(0.005)

    thread = threading.Thread(target=counting)
    thread.start()
    emplace.place(gnmt, "mcmc", seconds=1)
    stop.set()
    thread.join()
    assert count > 10


def test_two_placements_at_once(gnmt):
    alone = emplace.place(gnmt, "mcmc", evaluations=500, threads=1).placement
    found = [None, None]

    def search(i):
        found[i] = emplace.place(gnmt, "mcmc", evaluations=500, threads=1).placement

    threads = [threading.Thread(target=search, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found[0] == alone).all() and (found[1] == alone).all()


def test_what_cannot_fit_is_refused_and_what_does_not_is_said(make):
    with pytest.raises(emplace.Error, match="no placement of 'fork' fits"):
        emplace.place(make(memory=500))
    tight = make(memory=2500)
    answer = emplace.assess(tight, [0, 0, 0, 0])
    assert not answer.fits and "short" in answer.explanation()
    assert "does not fit" in answer._repr_html_()


def test_wrong_arguments(fork):
    learned = {info.key for info in emplace.list_placers() if info.family == "learned"}
    with pytest.raises(emplace.Error, match="objective 'fast'"):
        emplace.place(fork, objective="fast")
    with pytest.raises(emplace.Error, match="unknown scheduler 'lifo'"):
        emplace.place(fork, "heft", scheduler="lifo")
    with pytest.raises(emplace.Error, match="each of 4 ops"):
        emplace.place(fork, starts=[[0]])
    with pytest.raises(emplace.Error, match="expected a spec"):
        emplace.place(fork, [3])
    for key in ("gdp", "colocrl", "hdp", "mars", "post", "spotlight"):
        if key in learned:
            with pytest.raises(emplace.Error, match=rf"samples: .* an option of '{key}'; expected '{key}\(samples=5\)'"):
                emplace.place(fork, key, samples=5)
            assert emplace.place(fork, f"{key}()", evaluations=20, samples=5).samples_per_second > 0
    assert emplace.place(fork, "heft", samples=5).samples_per_second > 0
    with pytest.raises(TypeError, match="expected what emplace.compile gives, not 'fork'"):
        emplace.place("fork")


@pytest.mark.parametrize("name, value, expected", [
    ("seconds", "5s", "seconds: expected a number or None, not '5s'"),
    ("seconds", -1, "seconds: expected a number of seconds, 0 or more, not -1"),
    ("seconds", float("nan"), "seconds: expected a number of seconds, 0 or more, not nan"),
    ("evaluations", -5, "evaluations: expected 0 or more, not -5"),
    ("evaluations", 1.5, "evaluations: expected a whole number or None, not 1.5"),
    ("threads", 0, "threads: expected 1 or more, not 0"),
    ("seed", -1, "seed: expected a whole number that is not negative, not -1"),
    ("seed", "x" * 1000, r"seed: expected a whole number that is not negative, not 'x{60,90}\.\.\.$"),
    ("scheduler", None, "scheduler: expected a string, not None"),
])
def test_arguments_of_the_wrong_kind_are_named(fork, name, value, expected):
    with pytest.raises(emplace.Error, match=expected):
        emplace.place(fork, "heft", **{name: value})


def test_objectives_and_rates(fork):
    answer = emplace.place(fork, objective="period", evaluations=2000, samples=110)
    assert answer.time == 110_000 and answer.samples_per_second == 1e6
    # As the program calls them.
    assert emplace.place(fork, objective="throughput", evaluations=2000).time == answer.time
    assert emplace.place(fork, objective="latency", evaluations=2000).time == 111_000
    assert emplace.assess(fork, [0, 0, 1, 0], objective="serial period").time == 111_000


def test_a_comparison_has_the_best_first(gnmt):
    answers = emplace.compare(gnmt, "heuristic", threads=1)
    assert [a.time for a in answers] == sorted(a.time for a in answers)
    assert answers[0].placer in str(answers) and "<table>" in answers._repr_html_()
    assert len(answers.to_dict()["answers"]) == len(answers)


def random_search(session):
    """Placements at random, as long as it may."""
    random = np.random.default_rng(session.seed)
    devices = len(session.problem.cluster)
    while not session.spent:
        session.evaluate(random.integers(devices, size=(64, session.num_groups)))


def test_a_function_is_a_placer_like_any_other(gnmt):
    answers = emplace.compare(gnmt, ["single", random_search, "expert"], evaluations=300, seeds=2)
    assert [a.placer for a in answers].count("random_search") == 2
    for answer in answers:
        assert emplace.simulate(gnmt, answer, answer.priorities).step == answer.time
        if answer.placer == "random_search":
            assert 300 <= answer.evaluations <= 302
    again = emplace.place(gnmt, random_search, evaluations=300)
    assert again.time in [a.time for a in answers if a.placer == "random_search"]


def test_a_functions_own_answer_counts(fork):
    def by_hand(session):
        assert session.starts[0].tolist() == [0, 0, 0, 0]
        return [0, 0, 1, 0]

    answer = emplace.place(fork, by_hand, starts=[[0, 0, 0, 0]])
    assert answer.time == 111_000 and answer.placer == "by_hand"


def test_functions_that_go_wrong(fork):
    def broken(session):
        return 1 / 0

    def wrong(session):
        return [0, 0, 7, 0]

    def nothing(session):
        return None

    kept = []

    def keeps(session):
        kept.append(session)
        return [0, 0, 0, 0]

    with pytest.raises(ZeroDivisionError):
        emplace.compare(fork, ["single", broken])
    with pytest.raises(emplace.Error, match="placer 'wrong'.*op 'right'"):
        emplace.place(fork, wrong)
    with pytest.raises(emplace.Error, match="evaluated none"):
        emplace.place(fork, nothing)
    emplace.place(fork, keeps)
    with pytest.raises(emplace.Error, match="has ended"):
        kept[0].evaluate([[0, 0, 0, 0]])
    single = lambda session: None  # noqa: E731
    single.__name__ = "single"
    with pytest.raises(emplace.Error, match="one of that name already"):
        emplace.place(fork, single)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat(gnmt):
    def work(count):
        for i in range(count):
            answer = emplace.place(gnmt, "expert", threads=1)
            answer.device_of, answer.placement, answer.timeline.transfers
            emplace.simulate(gnmt, answer)
            try:
                emplace.place(gnmt, "hefft")
            except emplace.Error:
                pass

    work(40)
    before = resident()
    work(120)
    assert resident() - before < 8 << 20
