"""What results show of themselves in notebooks."""
from html import escape

from emplace._html import duration, size, table


def placed(found):
    return f"<p>{escape(repr(found))}</p>{found.answer._repr_html_()}"


def profile(found):
    steps = table(("device", "step"), [(name, _time(seconds)) for name, seconds in found.steps.items()])
    links = [(link["from"], link["to"], f"{link['bandwidth'] / 1e9:.2f} GB/s", f"{link['latency_us']:.1f} us")
             for link in found.links]
    return (f"<p>{escape(found.capture.name)}</p>{steps}"
            + (table(("from", "to", "bandwidth", "latency"), links) if links else ""))


def device_map(found):
    head = f"<p>a step takes {_time(found.seconds)}"
    if found.sent_bytes:
        head += f" and sends {size(found.sent_bytes)} of weights to {escape(str(found.main_device))}"
    return head + "</p>" + table(("module", "device"), [(name or "the model", device) for name, device in found.items()])


def _time(seconds):
    return duration(round(seconds * 1e9))
