"""A page that the program wrote in Firefox, which is driven by WebDriver BiDi: Debian has no driver of its own for it.

Usage: firefox_test.py EMPLACE. Exits with 77 (skipped) where firefox-esr or python3-websocket is not installed."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from browser import EMPLACE, EVIL, FIRST_ROW, FORK, LABELS, PAIR, data_of, time_text

FIREFOX = shutil.which("firefox-esr")
try:
    import websocket
except ImportError:
    websocket = None
if FIREFOX is None or websocket is None:
    print("skipped: firefox-esr or python3-websocket is not installed")
    sys.exit(77)


class Firefox:
    """A browser with one page. What it logs and asks for is in `events`."""

    def __init__(self, profile):
        self.events, self.calls = [], 0
        self.process = subprocess.Popen(
            [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        found = next(filter(None, (re.search(r"BiDi listening on (ws://\S+)", line) for line in self.process.stderr)))
        self.socket = websocket.create_connection(found[1] + "/session", timeout=120, suppress_origin=True)
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.page = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.call("browsingContext.setViewport", context=self.page, viewport={"width": 1280, "height": 1000})

    def call(self, method, **params):
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": params}))
        while (answer := json.loads(self.socket.recv())).get("id") != self.calls:
            self.events.append(answer)
        assert answer["type"] == "success", answer
        return answer["result"]

    def value(self, expression):
        """Of an expression in the page that is a text, a number or null."""
        result = self.call("script.evaluate", expression=expression, target={"context": self.page}, awaitPromise=True)
        assert result["type"] == "success", result
        return result["result"].get("value")

    def until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while not (value := self.value(expression)):
            assert time.monotonic() < end, f"waited too long for {expression}"
            time.sleep(0.05)
        return value

    def act(self, kind, actions):
        self.call("input.performActions", context=self.page, actions=[{"type": kind, "id": kind, "actions": actions}])

    def close(self):
        self.call("browser.close")
        self.process.communicate(timeout=60)


class FirefoxPage(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        (folder / "fork.json").write_text(json.dumps(FORK))
        (folder / "pair.yaml").write_text(PAIR)
        subprocess.run([EMPLACE, *"place fork.json -c pair.yaml --evaluations 500 --report page.html -q".split()],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
        self.result = data_of((folder / "page.html").read_text())["results"][0]
        (folder / "profile").mkdir()
        self.firefox = Firefox(folder / "profile")
        self.addCleanup(self.firefox.close)
        self.firefox.call("browsingContext.navigate", context=self.firefox.page, url=(folder / "page.html").as_uri(),
                          wait="complete")
        self.firefox.until("document.documentElement.dataset.ready")

    def test_says_what_the_json_says_and_can_be_used(self):
        firefox, step = self.firefox, self.result["answer"]["step_ns"]
        self.assertEqual(firefox.value("document.querySelector('#figure-time').textContent"), time_text(step))
        # An op of the timeline is explained, then selected by a click; the keyboard goes on from there.
        index = self.result["ops"]["name"].index(EVIL)
        start, length = (self.result["steps"][0][what][index] for what in ("start", "length"))
        box = json.loads(firefox.value(
            "(() => { const canvas = document.querySelector('#timeline canvas');"
            "canvas.scrollIntoView({block: 'center', behavior: 'instant'});"
            "return JSON.stringify(canvas.getBoundingClientRect()) })()"))
        x = box["left"] + LABELS + (start + length / 2) / step * (box["width"] - LABELS)
        y = box["top"] + FIRST_ROW + 31 * self.result["ops"]["device"][index]
        firefox.act("pointer", [{"type": "pointerMove", "x": round(x), "y": round(y)}])
        self.assertIn("left", firefox.until("document.querySelector('.tooltip')?.textContent"))
        firefox.act("pointer", [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}])
        self.assertEqual(firefox.until("document.querySelector('.inspector.open h3')?.textContent"), EVIL)
        firefox.value("document.querySelector('#timeline canvas').focus()")
        firefox.act("key", [{"type": "keyDown", "value": "\uE00C"}, {"type": "keyUp", "value": "\uE00C"}])  # Escape
        firefox.until("document.querySelector('.inspector.open h3') === null")
        # No script failed, names stay text, and nothing was asked for but the page itself.
        self.assertIsNone(firefox.value("window.broken ?? null"))
        for event in firefox.events:
            if event["method"] == "log.entryAdded":
                self.assertNotEqual(event["params"]["level"], "error", event)
            elif event["method"] == "network.beforeRequestSent" and event["params"]["context"] == firefox.page:
                self.assertRegex(event["params"]["request"]["url"], r"^(file|data|blob):")


if __name__ == "__main__":
    unittest.main()
