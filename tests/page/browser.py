"""What the tests of the page share: a browser, pages that the program wrote, and where things are on them.

Exits with 77 (skipped) where there is no browser."""

import base64
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
except ImportError:
    print("skipped: python3-selenium is not installed")
    sys.exit(77)

BROWSERS = ["/usr/bin/chromium", "/usr/bin/google-chrome"]
DRIVER = pathlib.Path("/usr/bin/chromedriver")
EMPLACE = str(pathlib.Path(sys.argv.pop(1)).resolve())

# Two branches that meet, one of them with a name that would end a script and begin another.
EVIL = "left</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>"
FORK = {
    "format": "emplace.graph/1",
    "name": "fork <b>bold</b>",
    "tensors": [{"bytes": 1000}, {"bytes": 1000000}, {"bytes": 1000000}, {"bytes": 4}],
    "ops": [
        {"name": "left.weight", "type": "parameter", "inputs": [], "outputs": [0]},
        {"name": EVIL, "type": "mm<i>", "inputs": [0], "outputs": [1], "module": "body.0",
         "time_us": {"gpu": 1000}},
        {"name": "right.mm", "type": "mm", "inputs": [], "outputs": [2], "module": "body.1",
         "time_us": {"gpu": 1200}},
        {"name": "join", "type": "add", "inputs": [1, 2], "outputs": [3], "module": "head",
         "time_us": {"gpu": 300}},
    ],
}
PAIR = """format: emplace.cluster/1
name: pair
kinds: {gpu: {peak_flops: {float32: 1e12}, memory_bandwidth: 100GB/s, memory: 1GiB, launch_us: 1}}
devices: [{name: d, kind: gpu, count: 2}]
links: [{from: "*", to: "*", bandwidth: 10GB/s, latency_us: 10, channel: out}]
"""
LABELS = 132  # the width of the timeline's labels
FIRST_ROW = 26 + 13  # the middle of its first row


def time_text(ns):
    """As the page writes times."""
    if ns < 1e3:
        return f"{ns} ns"
    value, unit = (ns / 1e3, "µs") if ns < 1e6 else (ns / 1e6, "ms") if ns < 1e10 else (ns / 1e9, "s")
    return f"{value:.{1 if value >= 100 else 2 if value >= 10 else 3}f} {unit}"


def bytes_text(count):
    names = ["B", "KiB", "MiB", "GiB", "TiB"]
    value, unit = float(count), 0
    while value >= 1024 and unit < 4:
        value, unit = value / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.{1 if value < 100 else 0}f} {names[unit]}"


def data_of(page):
    packed = re.search(r'<script id="data" type="text/plain">([^<]*)</script>', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def start_browser(downloads):
    binary = next((path for path in BROWSERS if pathlib.Path(path).exists()), None)
    if binary is None or not DRIVER.exists():
        print("skipped: neither chromium nor its driver is installed")
        sys.exit(77)
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.chrome.service.Service(str(DRIVER))
    browser = webdriver.Chrome(service=service, options=options)
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
    return browser


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "fork.json").write_text(json.dumps(FORK))
        (cls.folder / "pair.yaml").write_text(PAIR)
        cls.answer = cls.emplace("place fork.json -c pair.yaml --evaluations 500 --report place.html --json")
        cls.data = data_of((cls.folder / "place.html").read_text())
        cls.browser = start_browser(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.temporary.cleanup()

    @classmethod
    def emplace(cls, arguments):
        done = subprocess.run([EMPLACE, *arguments.split()], cwd=cls.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    def open(self, name):
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.browser.get((self.folder / name).as_uri())
        self.wait(lambda: self.browser.execute_script("return document.documentElement.dataset.ready"))
        # A browser that starts may still be laying the page out.
        time.sleep(0.2)

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not (value := condition()):
            self.assertLess(time.monotonic(), end, "waited too long")
            time.sleep(0.05)
        return value

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.find(selector).text

    def texts(self, selector):
        return [element.text for element in self.browser.find_elements(By.CSS_SELECTOR, selector)]

    def canvas(self, view, index=0):
        return self.browser.find_elements(By.CSS_SELECTOR, f"#{view} canvas")[index]

    def show(self, element):
        """In the middle of the window; what was pointed at no longer is."""
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)

    def in_timeline(self, op):
        """The middle of an op of place.html in the timeline."""
        result = self.data["results"][0]
        index = result["ops"]["name"].index(op)
        start, length = result["steps"][0]["start"][index], result["steps"][0]["length"][index]
        canvas = self.canvas("timeline")
        x = LABELS + (start + length / 2) / self.answer["step_ns"] * (canvas.size["width"] - LABELS)
        return canvas, x, FIRST_ROW + 31 * result["ops"]["device"][index]

    def point_at(self, op, click=False):
        """The pointer onto an op of the timeline."""
        self.point(*self.in_timeline(op), click)

    def point(self, canvas, x, y, click=False):
        self.show(canvas)
        self.move(canvas, x, y, click)

    def move(self, canvas, x, y, click=False):
        """The pointer to a place of a canvas that can be seen."""
        actions = ActionChains(self.browser, duration=50)
        width, height = canvas.size["width"], canvas.size["height"]
        actions.move_to_element_with_offset(canvas, round(x - width / 2), round(y - height / 2))
        if click:
            actions.click()
        actions.perform()

    def tearDown(self):
        """No script failed and nothing was asked for but the page itself."""
        errors = [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(errors, [])
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.assertRegex(message["params"]["request"]["url"], r"^(file|data|blob):")
