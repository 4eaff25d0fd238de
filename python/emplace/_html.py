"""What results show of themselves in notebooks, and as dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Sequence

from ._emplace import (
    Answer,
    Cluster,
    ExecutionResult,
    Graph,
    Model,
    Partition,
    Problem,
    ProfileResult,
    Selection,
    Timeline,
    TrainResult,
)

if TYPE_CHECKING:
    from ._place import Comparison

_WIDTH = 900
_LABEL = 110
_ROW = 22
_COLOURS = {"forward": "#4c78a8", "backward": "#e4803a", "update": "#54a24b", "transfer": "#9d8bb5"}


def attach() -> None:
    """Gives the classes of the C++ part what is easier written in Python."""
    from . import _files

    for result in (Answer, ExecutionResult, Graph, Partition, ProfileResult):
        result.to_dict = _parsed_json  # type: ignore[attr-defined]
    Answer.save = _files.save_placement
    Answer._repr_html_ = _answer
    Timeline.to_dict = _timeline_dict
    Timeline._repr_html_ = lambda self: _svg(self)
    Partition._repr_html_ = _partition
    Cluster.to_dict = _cluster_dict
    Cluster._repr_html_ = _cluster
    Graph._repr_html_ = _graph
    Model.to_dict = _model_dict
    Model._repr_html_ = _model
    Problem.to_dict = _problem_dict
    Problem._repr_html_ = _problem
    ExecutionResult._repr_html_ = _execution
    ProfileResult.save = _files.save_profile
    ProfileResult._repr_html_ = _profile
    Selection.to_dict = _selection_dict
    Selection._repr_html_ = _fields
    TrainResult.save = _files.save_policy
    TrainResult.to_dict = _train_dict
    TrainResult._repr_html_ = _fields


def comparison(answers: Comparison) -> str:
    if not answers:
        return "<p>no answers</p>"
    best = answers[0].time
    rows = [
        (a.placer, a.seed, duration(a.time), f"{a.time / best:.3f}", _yes(a.fits), f"{a.search_seconds:.2f} s")
        for a in answers
    ]
    return table(("placer", "seed", "time", "by the best", "fits", "search"), rows)


def duration(nanoseconds: int) -> str:
    """For people.

    >>> duration(1_234_567)
    '1.235 ms'
    """
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds} ns"


def size(number: int | None) -> str:
    """For people.

    >>> size(3 << 29)
    '1.5 GiB'
    """
    if number is None or number == (1 << 63) - 1:
        return "unlimited"
    for unit, bytes_of in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= bytes_of:
            return f"{number / bytes_of:.1f} {unit}"
    return f"{number} B"


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    from html import escape

    def line(tag: str, cells: Sequence[object]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"


def _answer(answer: Answer) -> str:
    from html import escape

    timeline = answer.timeline
    head = f"<b>{duration(answer.time)}</b>, at least {duration(answer.bound)} ({escape(answer.bound_reason)})"
    if not answer.fits:
        head += ", <b>does not fit</b>"
    used = answer.used
    rows = [
        (
            device.name,
            device.kind,
            int((answer.placement == i).sum()),
            f"{100 * use.busy / max(1, timeline.step):.0f} %",
            size(int(used[i])),
            size(use.capacity),
        )
        for i, (device, use) in enumerate(zip(answer.problem.cluster.devices, timeline.devices))
    ]
    return f"<p>{head}</p>" + table(("device", "kind", "ops", "busy", "needs", "has"), rows) + _svg(timeline)


def _slices(rows: list[list[tuple[int, int, str, str]]], step: int) -> Iterable[str]:
    """Rectangles; what is narrower than half a pixel goes with what follows it closely."""
    from html import escape

    scale = (_WIDTH - _LABEL) / max(1, step)
    for row, slices in enumerate(rows):
        last: tuple[float, float, str] | None = None
        title = ""
        for start, finish, colour, name in sorted(slices):
            left, right = _LABEL + start * scale, _LABEL + finish * scale
            if last and colour == last[2] and left - last[1] < 0.5 and right - last[0] < 2:
                last = (last[0], max(right, last[1]), colour)
                continue
            if last:
                yield _rectangle(row, last, escape(title))
            last, title = (left, right, colour), name
        if last:
            yield _rectangle(row, last, escape(title))


def _rectangle(row: int, slice_: tuple[float, float, str], title: str) -> str:
    left, right, colour = slice_
    return (
        f'<rect x="{left:.1f}" y="{row * _ROW + 3}" width="{max(right - left, 0.5):.1f}" height="{_ROW - 6}" '
        f'fill="{_COLOURS[colour]}"><title>{title}</title></rect>'
    )


def _svg(timeline: Timeline) -> str:
    """The timeline: a row for each device, then for each channel that carries something."""
    from html import escape

    problem = timeline.problem
    devices, graph = problem.cluster.devices, problem.graph
    rows: list[list[tuple[int, int, str, str]]] = [[] for _ in devices]
    placement, start, finish = timeline.placement.tolist(), timeline.start.tolist(), timeline.finish.tolist()
    for number, device in enumerate(placement):
        if finish[number] > start[number]:
            op = graph.op(number)
            title = f"{op.name} ({op.type}): {duration(finish[number] - start[number])}"
            rows[device].append((start[number], finish[number], op.phase, title))
    labels = [device.name for device in devices]
    sent = {name: column.tolist() for name, column in timeline.transfers.items()}
    channels = problem.cluster.channels
    for channel in sorted(set(sent["channel"]) - {-1}):
        labels.append(channels[channel])
        rows.append([])
        for i in (i for i, other in enumerate(sent["channel"]) if other == channel):
            title = f"{size(sent['bytes'][i])} to {devices[sent['to'][i]].name}"
            rows[-1].append((sent["start"][i], sent["finish"][i], "transfer", title))
    texts = "".join(
        f'<text x="0" y="{row * _ROW + 15}" font-size="11">{escape(label[:18])}</text>'
        for row, label in enumerate(labels)
    )
    height = len(rows) * _ROW + 16
    axis = f'<text x="{_WIDTH}" y="{height - 3}" font-size="11" text-anchor="end">{duration(timeline.step)}</text>'
    axis += f'<text x="{_LABEL}" y="{height - 3}" font-size="11">' + "".join(
        f'<tspan fill="{colour}">&#9632;</tspan> {name}&#160;&#160; ' for name, colour in _COLOURS.items()
    ) + "</text>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif" '
        f'fill="currentColor">{texts}{"".join(_slices(rows, timeline.step))}{axis}</svg>'
    )


def _partition(partition: Partition) -> str:
    from html import escape

    found = partition.to_dict()
    plans = [found, *found.get("compared", []), found.get("one_device"), found.get("placement")]
    rows = [
        (
            plan["how"],
            duration(plan["step_ns"]),
            size(plan["transfer_bytes"]),
            size(max(device["peak_bytes"] for device in plan["devices"])),
            _yes(plan["fits"]),
        )
        for plan in plans
        if plan
    ]
    plans_shown = table(("how", "step", "sent", "memory of the fullest", "fits"), rows)
    return f"<p>{escape(partition.verdict)}</p>{plans_shown}{_image(partition.picture_svg())}"


def _image(svg: str) -> str:
    """A picture that shares no styles with the page around it."""
    from base64 import b64encode

    return f'<img src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}" alt="cuts by layer">'


def _execution(result: ExecutionResult) -> str:
    from html import escape

    if not result.fits:
        return f"<p>does not fit: {escape(result.failure)}</p>"
    head = (
        f"<b>{duration(result.time)}</b> measured (half of {len(result.steps)} steps between {duration(result.low)} "
        f"and {duration(result.high)}), {duration(result.predicted)} predicted"
    )
    devices = result.problem.cluster.devices
    measured, predicted = result.measured_timeline, result.predicted_timeline
    rows = [
        (
            device.name,
            device.kind,
            f"{100 * measured.devices[i].busy / max(1, measured.step):.0f} %",
            size(int(result.peaks[i])),
            size(predicted.devices[i].peak),
        )
        for i, device in enumerate(devices)
    ]
    devices_shown = table(("device", "kind", "busy", "peak measured", "predicted"), rows)
    notes = "".join(f"<p>{escape(note)}</p>" for note in result.notes)
    return f"<p>{head}</p>{devices_shown}{notes}<p>measured</p>{_svg(measured)}<p>predicted</p>{_svg(predicted)}"


def _profile(result: ProfileResult) -> str:
    from html import escape

    notes = "".join(f"<p>{escape(note)}</p>" for note in result.notes)
    return f"<pre>{escape(result.to_text())}</pre>{notes}"


def _fields(result: Any) -> str:
    """Of results that are a few figures."""
    values = {name: value for name, value in result.to_dict().items() if not isinstance(value, list)}
    return table(tuple(name.replace("_", " ") for name in values), [tuple(values.values())])


def _cluster(cluster: Cluster) -> str:
    rows = [(device.name, device.kind, size(device.memory)) for device in cluster.devices]
    return table(("device", "kind", "memory"), rows)


def _graph(graph: Graph) -> str:
    numbers = (f"{graph.num_ops:,}", f"{graph.parameters:,}", f"{graph.flops:.3g}")
    rows = [(graph.name, *numbers, _yes(graph.training))]
    return table(("graph", "ops", "parameters", "FLOPs", "training"), rows)


def _model(model: Model) -> str:
    from html import escape

    notes = "".join(f"<p>{escape(note)}</p>" for note in model.notes)
    return _graph(model.graph) + (_cluster(model.cluster) if model.cluster else "") + notes


def _problem(problem: Problem) -> str:
    from html import escape

    return f"<pre>{escape(problem.describe())}</pre>" + _graph(problem.graph) + _cluster(problem.cluster)


def _parsed_json(result: Any) -> dict[str, Any]:
    """As `to_json`."""
    import json

    return json.loads(result.to_json())  # type: ignore[no-any-return]


def _timeline_dict(timeline: Timeline) -> dict[str, Any]:
    return {
        "step_ns": timeline.step,
        "fits": timeline.fits,
        "ops": [
            {"name": name, "device": device, "start_ns": start, "finish_ns": finish}
            for name, device, start, finish in zip(
                timeline.problem.graph.op_names,
                timeline.placement.tolist(),
                timeline.start.tolist(),
                timeline.finish.tolist(),
            )
        ],
        "transfers": {name: column.tolist() for name, column in timeline.transfers.items()},
        "devices": [{"busy_ns": d.busy, "peak_bytes": d.peak, "capacity_bytes": d.capacity} for d in timeline.devices],
    }


def _cluster_dict(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "devices": [
            {"name": d.name, "kind": d.kind, "memory_bytes": d.memory, "cpu": d.is_cpu} for d in cluster.devices
        ],
        "channels": cluster.channels,
    }


def _model_dict(model: Model) -> dict[str, Any]:
    cluster = model.cluster.to_dict() if model.cluster else None
    return {"graph": model.graph.to_dict(), "cluster": cluster, "notes": model.notes}


def _problem_dict(problem: Problem) -> dict[str, Any]:
    return {
        "graph": problem.graph.to_dict(),
        "cluster": problem.cluster.to_dict(),
        "groups": problem.groups.tolist(),
        "durations_ns": problem.durations.tolist(),
    }


def _selection_dict(selection: Selection) -> dict[str, Any]:
    names = ("cost", "lower_bound", "feasible", "proven")
    return {**{name: getattr(selection, name) for name in names}, "strategies": selection.strategies.tolist()}


def _train_dict(result: TrainResult) -> dict[str, Any]:
    """All but the policy itself."""
    names = ("tasks", "evaluations", "steps", "finished", "relative_time", "fitting_share", "warnings")
    return {name: getattr(result, name) for name in names}
