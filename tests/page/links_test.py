"""What is pointed at in one view of the page is seen in the others: ops, transfers, modules, devices, steps.

Usage: links_test.py EMPLACE. Exits with 77 (skipped) where there is no browser."""

import hashlib
import json
import unittest

from browser import EVIL, LABELS, PAIR, PageTest, bytes_text, data_of
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

MAP_HEIGHT = 520
PIXEL = "return [...arguments[0].getContext('2d').getImageData(arguments[1], arguments[2], 1, 1).data]"
PICTURE = "return arguments[0].toDataURL()"
PLAIN, PALE = 70, 40  # at least as strong is the colour of what is in question; at most that of what steps back


class Links(PageTest):
    def setUp(self):
        # The second branch on the other device, so that something is sent.
        if not (self.folder / "apart.html").exists():
            device = {"left.weight": "d0", EVIL: "d0", "right.mm": "d1", "join": "d0"}
            (self.folder / "apart.placement").write_text(json.dumps({"assignment": device}))
            type(self).answer = self.emplace("simulate fork.json apart.placement -c pair.yaml --report apart.html --json")
            type(self).data = data_of((self.folder / "apart.html").read_text())
        self.open("apart.html")

    def colour(self, canvas, x, y):
        """How strong it is there: greys and what is empty have none."""
        *colours, alpha = self.browser.execute_script(PIXEL, canvas, round(x), round(y))
        return (max(colours) - min(colours)) * alpha / 255

    def in_map(self, op):
        """The upper left of the square of an op, where nothing is written."""
        result = self.data["results"][0]
        boxes = result["map"]
        index = result["ops"]["name"].index(op)
        canvas = self.canvas("map")
        width = canvas.size["width"]
        scale = min((width - 8) / boxes["width"][0], (MAP_HEIGHT - 8) / boxes["height"][0])
        box = next(i for i, ops in enumerate(boxes["ops"]) if index in ops)
        at = boxes["ops"][box].index(index)
        x = boxes["ops_x"][box] + at % boxes["columns"][box] + 0.25
        y = boxes["ops_y"][box] + at // boxes["columns"][box] + 0.25
        return (canvas, (width - boxes["width"][0] * scale) / 2 + x * scale,
                (MAP_HEIGHT - boxes["height"][0] * scale) / 2 + y * scale)

    def beside_text(self, op):
        canvas, x, y = self.in_timeline(op)
        return canvas, x, y - 10

    def hover(self, element):
        self.show(element)
        ActionChains(self.browser).move_to_element(element).perform()

    def pictures(self):
        return [self.picture(canvas) for canvas in self.browser.find_elements(By.CSS_SELECTOR, "main canvas")]

    def picture(self, canvas):
        return hashlib.sha256(self.browser.execute_script(PICTURE, canvas).encode()).hexdigest()

    def assert_steps_back(self, plain, pale):
        """In the timeline and in the map."""
        for place in (self.beside_text, self.in_map):
            for op in plain:
                self.wait(lambda: self.colour(*place(op)) >= PLAIN)
            for op in pale:
                self.wait(lambda: self.colour(*place(op)) <= PALE)

    def test_a_device_lets_the_others_step_back(self):
        self.assert_steps_back(plain=[EVIL, "right.mm", "join"], pale=[])
        before = self.pictures()
        self.hover(self.browser.find_elements(By.CSS_SELECTOR, "#fits tr")[1])
        self.assert_steps_back(plain=["right.mm"], pale=[EVIL, "join"])
        # Of the memory, that of the other device.
        first, second = self.canvas("memory", 0), self.canvas("memory", 1)
        bottom = lambda canvas: self.colour(canvas, LABELS + 20, canvas.size["height"] - 8)
        self.assertLess(bottom(first), bottom(second) / 2)
        # A selection stays, until something else is pointed at.
        self.browser.find_elements(By.CSS_SELECTOR, "#fits button")[0].click()
        self.hover(self.find("h1"))
        self.assert_steps_back(plain=[EVIL, "join"], pale=["right.mm"])
        self.find(".inspector .close").click()
        self.hover(self.find("h1"))
        self.wait(lambda: self.pictures() == before)

    def test_a_module_lets_the_rest_step_back(self):
        before = self.pictures()
        button = next(b for b in self.browser.find_elements(By.CSS_SELECTOR, "#where button") if b.text == "body.1")
        self.hover(button)
        self.assert_steps_back(plain=["right.mm"], pale=[EVIL, "join"])
        # Its ops are marked in the memory of the device that they are on.
        after = self.pictures()
        self.assertEqual(before[1], after[1])
        self.assertNotEqual(before[2], after[2])

    def test_lines_of_the_map_say_what_they_carry(self):
        canvas, x, y = self.in_map("right.mm")
        self.show(canvas)
        _, to_x, to_y = self.in_map("join")
        tips = set()
        for part in range(2, 19):  # across the line, somewhere between the two boxes
            for off in range(-120, 121, 8):
                self.move(canvas, x + (to_x - x) / 2 + off, y + (to_y - y) * part / 20)
                tips.update(self.texts(".tooltip"))
                if any("→" in tip for tip in tips):
                    break
        line = next(tip for tip in tips if "→" in tip)
        self.assertIn("body.1 → head", line)
        self.assertIn(bytes_text(1000000), line)

    def test_keys_select_in_the_map(self):
        canvas = self.canvas("map")
        chosen = lambda: (self.texts(".inspector.open h3") or [None])[0]
        for key, name in [("n", "body"), (Keys.ENTER, "body.0"), ("n", "body.1"), (Keys.ENTER, "right.mm"),
                          (Keys.BACKSPACE, "body.1"), ("p", "body.0"), (Keys.BACKSPACE, "body"), ("n", "head"),
                          (Keys.BACKSPACE, None)]:
            canvas.send_keys(key)
            self.wait(lambda: chosen() == name)

    def test_a_large_cluster_is_drawn_by_machines(self):
        (self.folder / "large.yaml").write_text(
            PAIR.split("devices:")[0].replace("pair", "large") +
            "machines: [{name: host, count: 3, devices: [{name: gpu, kind: gpu, count: 8}],"
            " links: [{from: '*', to: '*', bandwidth: 10GB/s, latency_us: 1}]}]\n"
            "network: [{from: '*', to: '*', bandwidth: 1GB/s, latency_us: 10}]\n")
        self.emplace("place fork.json -c large.yaml -p round_robin --report large.html")
        self.open("large.html")
        self.assertEqual(self.texts(".machines b"), ["host0", "host1", "host2"])
        devices = self.browser.find_elements(By.CSS_SELECTOR, ".machines button")
        self.assertEqual(len(devices), 24)
        self.show(devices[9])
        devices[9].click()
        self.wait(lambda: self.texts(".inspector.open h3") == ["host1.gpu1"])

    def test_an_op_is_marked_in_every_view(self):
        before = self.pictures()
        self.point_at("right.mm")
        self.wait(lambda: [old != new for old, new in zip(before, self.pictures())] == [True, False, True, True])

    def test_a_transfer_is_marked_with_the_ops_at_its_ends(self):
        before = self.pictures()
        result = self.data["results"][0]
        sent = result["steps"][0]["transfers"]
        self.assertEqual([result["ops"]["name"][op] for op in sent["op"]], ["right.mm"])
        canvas = self.canvas("timeline")
        x = LABELS + (sent["start"][0] + sent["length"][0] / 2) / self.answer["step_ns"] * (canvas.size["width"] - LABELS)
        self.point(canvas, x, 26 + 2 * 31 + 8 + 7)
        self.wait(lambda: [tip for tip in self.texts(".tooltip") if "transfer on" in tip])
        # Its reader is on the first device, what makes it on the second: it is seen in the memory of both.
        self.wait(lambda: [old != new for old, new in zip(before, self.pictures())] == [True] * 4)

    def test_a_step_of_a_stream_lets_the_others_step_back(self):
        for arguments, lanes in [("-p single", 1), ("-p round_robin", None)]:
            with self.subTest(arguments):
                answer = self.emplace(f"place fork.json -c pair.yaml {arguments} --objective throughput "
                                      "--report steps.html --json")
                result = data_of((self.folder / "steps.html").read_text())["results"][0]
                lanes = lanes or answer["stream"]["in_flight"]
                self.open("steps.html")
                canvas = self.canvas("timeline")
                before = self.pictures()
                until = result["stream"]["entered"][-1] or max(result["stream"]["finished"])
                lane = max(3, min(13, 96 // lanes))
                place = lambda time: LABELS + time / until * (canvas.size["width"] - LABELS)
                # Every step that begins on the first line, and one that has no transfer of its number.
                line = range(0, len(result["steps"]) - lanes, lanes)
                for step in line:
                    middle = (result["stream"]["entered"][step] + result["stream"]["finished"][step]) / 2
                    self.point(canvas, place(middle), 26 + 16 + lane / 2)
                    self.wait(lambda: [tip for tip in self.texts(".tooltip") if tip.startswith(f"Step {step + 1}\n")])
                self.wait(lambda: self.pictures()[0] != before[0])
                after = self.pictures()
                self.assertEqual(before[-1], after[-1])  # every op of the map is of every step
                self.assertNotEqual(before[1], after[1])  # the memory says when
                # Its ops as they were, the others paler.
                busy = result["stream"]["stages"][0]
                op = result["ops"]["device"].index(busy, 1)
                y = 26 + 16 + lanes * (lane + 1) + 8 + 3
                at = lambda step: place(result["steps"][step]["start"][op] + result["steps"][step]["length"][op] / 3)
                self.assertGreaterEqual(self.colour(canvas, at(line[-1]), y), PLAIN)
                self.assertLessEqual(self.colour(canvas, at(line[-1] - 1), y), PALE)


if __name__ == "__main__":
    unittest.main()
