"""Opens pages that the program wrote in a real browser, as people do: what they show is what --json
says, hovering and selecting work, nothing leaves the page, names stay text.

Usage: page_test.py EMPLACE. Exits with 77 (skipped) where there is no browser."""

import base64
import csv
import io
import json
import os
import subprocess
import time
import unittest

from browser import EMPLACE, EVIL, FORK, LABELS, PAIR, PageTest, bytes_text, data_of, time_text
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


class Page(PageTest):
    # ---- what it says

    def test_numbers_are_those_of_the_json(self):
        self.open("place.html")
        self.assertEqual(self.data["results"][0]["answer"], self.answer)
        self.assertEqual(self.text("#figure-time"), time_text(self.answer["step_ns"]))
        alone = self.answer["explanation"]["fitting_device"]["step_ns"]
        self.assertEqual(self.text("#figure-gain"), f"{alone / self.answer['step_ns']:.2f}×")
        for device in self.answer["devices"]:
            self.assertEqual(self.text(f"[data-peak={device['name']}]"), bytes_text(device["peak_bytes"]))
        changes = self.answer["explanation"]["sensitivities"]["list"]
        self.assertIn("devices", [change["resource"] for change in changes])
        for change in changes:
            self.assertEqual(self.text(f"[data-what={change['resource']}]"), time_text(change["step_ns"]))
        memory = self.data["results"][0]["memory"]["devices"]
        self.assertEqual([device["peak"] for device in memory],
                         [device["peak_bytes"] for device in self.answer["devices"]])

    def test_questions_come_in_order_and_then_the_views(self):
        self.open("place.html")
        sections = self.browser.find_elements(By.CSS_SELECTOR, "main section")
        self.assertEqual([section.get_attribute("id") for section in sections][:8],
                         ["gain", "fits", "limits", "where", "help", "timeline", "memory", "map"])
        self.assertIn("emplace place fork.json -c pair.yaml", self.text("#asked code"))

    def test_op_times_say_where_they_are_from_and_how_far_estimates_are_off(self):
        matrix = {"shape": [1000, 1000], "dtype": "float32"}
        product = {"type": "MatMul", "flops": 2000000000}
        graph = {"format": "emplace.graph/1", "name": "half measured", "tensors": [matrix] * 3, "ops": [
            {"name": "x", "type": "input", "inputs": [], "outputs": [0]},
            {"name": "a", "inputs": [0, 0], "outputs": [1], **product, "time_us": {"gpu": 1000}},
            {"name": "b", "inputs": [1, 0], "outputs": [2], **product}]}
        (self.folder / "half.json").write_text(json.dumps(graph))
        self.emplace("place half.json -c pair.yaml --evaluations 50 --report half.html")
        half = data_of((self.folder / "half.html").read_text())["results"][0]
        costs = {cost["source"]: cost for cost in half["costs"]}
        error, = costs["analytic"]["errors"]
        estimate = costs["analytic"]["share"] / costs["measured"]["share"]  # of the same op
        self.assertAlmostEqual(error["error"], estimate - 1, places=6)
        self.open("half.html")
        self.assertIn(f"which is on average {100 * error['error']:.0f} % off the measured times of 1 op on gpu",
                      self.text("#asked"))
        self.open("place.html")
        self.assertIn("100 % of the time measured", self.text("#asked"))

    def test_names_with_markup_stay_text(self):
        self.open("place.html")
        self.assertIsNone(self.browser.execute_script("return window.broken ?? null"))
        self.point_at(EVIL, click=True)
        self.assertEqual(self.text(".inspector h3"), EVIL)
        self.assertEqual(self.text("h1"), "fork <b>bold</b> on pair")
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "#app img, #app script, #app b b"), [])
        self.assertIsNone(self.browser.execute_script("return window.broken ?? null"))

    # ---- what one can do

    def test_hovering_the_timeline_explains(self):
        self.open("place.html")
        self.point_at("join")
        tip = self.wait(lambda: self.texts(".tooltip"))[0]
        self.assertIn("join", tip)
        self.assertIn("last input", tip)
        self.assertIn(time_text(300_000), tip)

    def test_a_selection_is_seen_in_all_views(self):
        self.open("place.html")
        picture = "return document.querySelector(arguments[0]).toDataURL()"
        views = ["#timeline canvas", "#map canvas"]
        before = [self.browser.execute_script(picture, view) for view in views]
        self.point_at("right.mm", click=True)
        self.wait(lambda: self.texts(".inspector.open h3") == ["right.mm"])
        ActionChains(self.browser).move_to_element(self.find("h1")).perform()
        time.sleep(0.3)
        for view, old in zip(views, before):
            self.assertNotEqual(self.browser.execute_script(picture, view), old, view)
        links = self.browser.find_elements(By.CSS_SELECTOR, ".inspector button.text")
        next(link for link in links if link.text == "join").click()
        self.wait(lambda: self.texts(".inspector.open h3") == ["join"])

    def test_the_map_can_be_hovered_and_opened(self):
        self.open("place.html")
        canvas = self.find("#map canvas")
        self.show(canvas)
        ActionChains(self.browser).move_to_element(canvas).perform()
        found = set()
        for x in range(-400, 401, 50):
            ActionChains(self.browser).move_to_element_with_offset(canvas, x, 60).perform()
            found.update(self.texts(".tooltip strong"))
        self.assertTrue(found & {"body.0", "body.1", "head", "join", "right.mm", EVIL}, found)

    def test_keys_move_zoom_and_follow_the_chain(self):
        self.open("place.html")
        canvas = self.find("#timeline canvas")
        picture = lambda: self.browser.execute_script("return arguments[0].toDataURL()", canvas)
        whole = picture()
        canvas.send_keys("+")
        self.wait(lambda: picture() != whole)
        canvas.send_keys("0")
        self.wait(lambda: picture() == whole)
        canvas.send_keys("n")
        first = self.wait(lambda: self.texts(".inspector.open h3"))[0]
        canvas.send_keys("n")
        self.wait(lambda: self.texts(".inspector.open h3") != [first])
        canvas.send_keys(Keys.ESCAPE)
        self.wait(lambda: not self.texts(".inspector.open h3"))

    def test_devices_of_the_drawing_are_buttons(self):
        self.open("place.html")
        boxes = self.browser.find_elements(By.CSS_SELECTOR, "#asked svg [role=button]")
        self.assertEqual([box.get_attribute("aria-label") for box in boxes], ["d0", "d1"])
        for key in (Keys.ENTER, Keys.SPACE):
            self.browser.execute_script("arguments[0].focus()", boxes[1])
            ActionChains(self.browser).send_keys(key).perform()
            self.wait(lambda: self.texts(".inspector.open h3") == ["d1"])
            ActionChains(self.browser).send_keys(key).perform()
            self.wait(lambda: not self.texts(".inspector.open h3"))

    def unlimited(self):
        """A transfer of 100 ms, and short ones beside it, as only a channel without limits carries them."""
        sources = [("big", 1_000_000_000, 100)] + [(f"small{i}", 1_000_000, 1000) for i in range(40)]
        ops = [{"name": name, "type": "mm", "inputs": [], "outputs": [i], "time_us": {"gpu": length}}
               for i, (name, _, length) in enumerate(sources)]
        ops += [{"name": f"{name}.read", "type": "mm", "inputs": [i], "outputs": [], "time_us": {"gpu": 10}}
                for i, (name, *_) in enumerate(sources)]
        graph = {"format": "emplace.graph/1", "name": "beside", "tensors": [{"bytes": size} for _, size, _ in sources],
                 "ops": ops}
        (self.folder / "beside.json").write_text(json.dumps(graph))
        (self.folder / "beside.placement").write_text(json.dumps(
            {"assignment": {op["name"]: "d1" if op["name"].endswith("read") else "d0" for op in ops}}))
        (self.folder / "unlimited.yaml").write_text(PAIR.replace("channel: out", "channel: unlimited"))
        self.emplace("simulate beside.json beside.placement -c unlimited.yaml --report beside.html")
        self.open("beside.html")
        return data_of((self.folder / "beside.html").read_text())["results"][0]

    def test_transfers_side_by_side_are_all_there(self):
        result = self.unlimited()
        canvas = self.find("#timeline canvas")
        self.show(canvas)
        links = 26 + 2 * 31 + 8  # where their rows begin
        self.assertGreater(canvas.size["height"], links + 19)

        def tips():
            """What is at the middle of the time, row by row."""
            found = set()
            for y in range(links + 2, canvas.size["height"], 4):
                self.move(canvas, LABELS + (canvas.size["width"] - LABELS) / 2, y)
                found.update(self.texts(".tooltip strong"))
            return found

        self.assertIn("big", tips())
        for _ in range(7):  # to 6 ms in its middle
            canvas.send_keys("+")
        self.wait(lambda: "big" in tips())
        before = self.browser.execute_script("return arguments[0].toDataURL()", canvas)
        self.point(canvas, LABELS + (canvas.size["width"] - LABELS) / 2, links + 4, click=True)
        self.wait(lambda: self.texts(".inspector.open h3") == ["big, sent"])
        self.assertNotEqual(self.browser.execute_script("return arguments[0].toDataURL()", canvas), before)
        sent = result["steps"][0]["transfers"]
        self.assertGreater(sent["length"][sent["op"].index(0)], 99_000_000)

    def test_ops_are_found_by_name(self):
        self.open("place.html")
        box = self.find("input[type=search]")
        box.send_keys("JOIN", Keys.ENTER)
        self.wait(lambda: self.texts(".inspector.open h3") == ["join"])
        self.assertEqual(self.text(".search .muted"), "1 of 1")

    def test_light_and_dark(self):
        self.open("place.html")
        colour = lambda: self.find("body").value_of_css_property("background-color")
        light = colour()
        self.find("#theme").click()
        self.assertNotEqual(colour(), light)
        self.find("#theme").click()
        self.assertEqual(colour(), light)

    def test_downloads(self):
        self.open("place.html")
        for button in self.browser.find_elements(By.CSS_SELECTOR, ".downloads button"):
            self.browser.execute_script("arguments[0].click()", button)
            time.sleep(0.2)
        table = self.wait(lambda: next(self.folder.glob("*-ops.csv"), None))
        rows = list(csv.DictReader(io.StringIO(table.read_text())))
        self.assertEqual([row["op"] for row in rows], [op["name"] for op in FORK["ops"]])
        whole = self.wait(lambda: next(self.folder.glob("*pair.json"), None))
        self.assertEqual(json.loads(whole.read_text()), self.data)

    def test_prints(self):
        self.open("place.html")
        pdf = base64.b64decode(self.browser.print_page())
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 20_000)

    # ---- streams

    def stream(self):
        """A chain of three layers on three devices, as a pipeline."""
        if not hasattr(Page, "streamed"):
            tensors = [{"bytes": 1_000_000} for _ in range(6)]
            ops = [{"name": f"layer.{i}.mm", "type": "mm", "inputs": [i - 1] if i else [], "outputs": [i],
                    "module": f"layer.{i}", "time_us": {"gpu": 1000}} for i in range(3)]
            ops += [{"name": f"layer.{2 - i}.grad", "type": "mm", "inputs": [2 + i, 2 - i], "outputs": [3 + i],
                     "module": f"layer.{2 - i}", "phase": "backward", "time_us": {"gpu": 1500}} for i in range(3)]
            chain = {"format": "emplace.graph/1", "name": "chain", "tensors": tensors, "ops": ops}
            (self.folder / "chain.json").write_text(json.dumps(chain))
            (self.folder / "three.yaml").write_text(PAIR.replace("count: 2", "count: 3").replace("name: pair", "name: three"))
            # The first layer on the last device, so that stages are in another order than devices.
            device = {f"layer.{i}.{op}": f"d{2 - i}" for i in range(3) for op in ("mm", "grad")}
            (self.folder / "chain.placement").write_text(json.dumps({"assignment": device}))
            Page.streamed = self.emplace("simulate chain.json chain.placement -c three.yaml --objective throughput "
                                         "--report stream.html --json")
        self.open("stream.html")
        return Page.streamed, data_of((self.folder / "stream.html").read_text())["results"][0]

    def stream_slice(self, result, op, step):
        """The middle of an op of a step, in the timeline: x and y of the canvas."""
        canvas = self.find("#timeline canvas")
        self.show(canvas)
        index = result["ops"]["name"].index(op)
        start, length = result["steps"][step]["start"][index], result["steps"][step]["length"][index]
        until = result["stream"]["entered"][-1]
        lanes = result["answer"]["stream"]["in_flight"]
        lane = max(3, min(13, 96 // lanes))
        stage = result["stream"]["stages"].index(result["ops"]["device"][index])
        x = LABELS + (start + length / 2) / until * (canvas.size["width"] - LABELS)
        return canvas, x, 26 + 16 + lanes * (lane + 1) + 8 + 31 * stage + 13

    def test_a_stream_says_what_the_json_says(self):
        answer, result = self.stream()
        stream = answer["stream"]
        self.assertGreater(stream["in_flight"], 1)
        self.assertEqual(self.text("#figure-time"), time_text(answer["period_ns"]))
        self.assertEqual(self.text("#figure-in-flight"), str(stream["in_flight"]))
        self.assertEqual(self.text("#figure-latency"), time_text(stream["latency_ns"]))
        self.assertEqual(self.text("#stream-in-flight"), str(stream["in_flight"]))
        self.assertEqual(self.text("#stream-latency"), time_text(stream["latency_ns"]))
        self.assertEqual(self.text("#stream-period"), time_text(answer["period_ns"]))
        self.assertIn(time_text(result["stream"]["finished"][0]), self.text("#stream"))
        self.assertIn(f"up to {stream['updates_behind']} update", self.text("#limits"))

    def test_a_stream_has_stages_in_the_order_of_its_pipeline_and_what_happens_until_the_end(self):
        answer, result = self.stream()
        stream, steps = result["stream"], result["steps"]
        names = [device["name"] for device in result["cluster"]["devices"]]
        self.assertEqual([names[device] for device in stream["stages"]], ["d2", "d1", "d0"])
        in_flight = answer["stream"]["in_flight"]
        self.assertEqual(len(steps), 2 * in_flight + 4)
        self.assertEqual(stream["entered"][:in_flight], [0] * in_flight)
        # Each enters when the one so many before it has finished; the last of them is the end.
        self.assertEqual(stream["entered"][in_flight:], stream["finished"][:len(steps) + 1 - in_flight])
        ends = [max(start + length for start, length in zip(step["start"], step["length"])) for step in steps]
        self.assertEqual(stream["finished"], ends)
        # By then it goes at its period.
        self.assertEqual(ends[in_flight + 3] - ends[in_flight + 2], answer["period_ns"])
        # Its memory is that of the answer, by then.
        self.assertEqual([device["peak"] for device in result["memory"]["devices"]],
                         [device["peak_bytes"] for device in answer["devices"]])
        charts = self.browser.find_elements(By.CSS_SELECTOR, "#memory canvas")
        labels = [chart.get_attribute("aria-label") for chart in charts]
        for label, device in zip(labels, stream["stages"], strict=True):
            self.assertIn(names[device], label)
            self.assertIn(bytes_text(answer["devices"][device]["peak_bytes"]), label)

    def test_hovering_a_stream_says_which_step(self):
        _, result = self.stream()
        for step in (0, 1, 2):
            self.point(*self.stream_slice(result, "layer.1.mm", step))
            tip = self.wait(lambda: self.texts(".tooltip"))[0]
            self.assertIn("layer.1.mm", tip)
            self.assertIn(f"step {step + 1}", tip)
            self.assertIn("last input", tip)
        # A step in flight, on the line of the first.
        canvas, _, _ = self.stream_slice(result, "layer.1.mm", 0)
        self.point(canvas, LABELS + 30, 26 + 16 + 4)
        tip = self.wait(lambda: [tip for tip in self.texts(".tooltip") if tip.startswith("Step 1")])[0]
        self.assertIn(time_text(result["stream"]["finished"][0]), tip)

    def test_an_op_of_a_stream_is_marked_in_every_step(self):
        _, result = self.stream()
        picture = "return arguments[0].getContext('2d').getImageData(arguments[1], arguments[2], 1, 1).data.join()"
        canvas, _, _ = self.stream_slice(result, "layer.1.mm", 0)
        index = result["ops"]["name"].index("layer.1.mm")
        until = result["stream"]["entered"][-1]
        shown = [i for i, step in enumerate(result["steps"]) if step["start"][index] + step["length"][index] <= until]
        self.assertGreater(len(shown), 4)

        def edges():
            """The lines above the op, where it is marked."""
            found = []
            for step in shown:
                _, x, y = self.stream_slice(result, "layer.1.mm", step)
                found.append(self.browser.execute_script(picture, canvas, round(x), round(y) - 14))
            return found

        before = edges()
        self.point(*self.stream_slice(result, "layer.1.mm", 1), click=True)
        self.wait(lambda: self.texts(".inspector.open h3") == ["layer.1.mm"])
        ActionChains(self.browser).move_to_element(self.find("h1")).perform()
        self.wait(lambda: all(old != new for old, new in zip(before, edges())))
        words = self.text(".inspector")
        self.assertIn("in step 2 starts at " + time_text(result["steps"][1]["start"][index]), words)
        for step in shown:
            self.assertIn(f"{step + 1} at {time_text(result['steps'][step]['start'][index])}", words)
        # To another occurrence, and to a step alone.
        buttons = self.browser.find_elements(By.CSS_SELECTOR, ".inspector .occurrences button")
        buttons[3].click()
        self.wait(lambda: "in step 4 starts at" in self.text(".inspector"))
        canvas.send_keys("0")
        time.sleep(0.2)
        self.point(canvas, LABELS + 30, 26 + 16 + 4, click=True)
        self.wait(lambda: self.texts(".inspector.open h3") == ["Step 1"])

    def test_steps_of_a_stream_are_reached_by_keys(self):
        self.stream()
        canvas = self.find("#timeline canvas")
        for key, title in (("n", "Step 1"), ("n", "Step 2"), ("p", "Step 1")):
            canvas.send_keys(key)
            self.wait(lambda: self.texts(".inspector.open h3") == [title])

    def test_a_stream_on_one_device_is_one_step_after_the_other(self):
        self.emplace("place fork.json -c pair.yaml -p single --objective throughput --report alone.html")
        self.open("alone.html")
        self.assertIn("One step after the other", self.text("#stream"))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "#figure-in-flight"), [])

    # ---- other commands

    def test_several_results_side_by_side(self):
        self.emplace("place fork.json -c pair.yaml --placer single --report one.html -o one.json")
        self.emplace("report one.html place.html -o both.html")
        self.open("both.html")
        results = data_of((self.folder / "both.html").read_text())["results"]
        line = next(text for text in self.texts("#several tbody tr") if text.startswith("step time"))
        for result in results:
            self.assertIn(time_text(result["answer"]["step_ns"]), line)
        self.assertEqual(self.text("#figure-time"), time_text(results[0]["answer"]["step_ns"]))
        self.browser.find_elements(By.CSS_SELECTOR, "#several thead button")[1].click()
        self.wait(lambda: self.text("#figure-time") == time_text(results[1]["answer"]["step_ns"]))

    def test_several_clusters_side_by_side(self):
        (self.folder / "small.yaml").write_text(PAIR.replace("1GiB", "1MB").replace("name: pair", "name: small"))
        (self.folder / "four.yaml").write_text(PAIR.replace("count: 2", "count: 4").replace("name: pair", "name: four"))
        rows = self.emplace("compare fork.json -c pair.yaml -c four.yaml -c small.yaml --placers expert,single "
                            "--evaluations 100 --report clusters.html --json")
        self.open("clusters.html")
        titles = self.texts("#several thead button")
        self.assertEqual(len(titles), 3)
        self.assertTrue(titles[1].endswith("on four") and titles[2].endswith("on small"))
        shown = [row.split() for row in self.texts("#several tbody tr")]
        steps = next(row for row in shown if row[:2] == ["step", "time"])
        self.assertIn(time_text(data_of((self.folder / "clusters.html").read_text())["results"][0]["answer"]["step_ns"]),
                      " ".join(steps))
        self.assertEqual(len(rows["clusters"]), 3)
        self.assertIn("one more gpu", self.text("#help"))
        self.browser.find_elements(By.CSS_SELECTOR, "#several thead button")[2].click()
        self.assertIn("No placement fits", self.text("#gain"))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "#timeline"), [])

    def test_a_training_shows_its_curves(self):
        if "learned" not in self.emplace("list"):
            self.skipTest("built without libtorch")
        answer = self.emplace("train --policy gdp --graphs family:ptb:sequence=2,seed=0..1 --clusters 2xp100 --width 8 "
                              "--layers 1 --steps 4 -o small.policy --report train.html --json")
        self.open("train.html")
        self.assertEqual(self.text("h1"), "Training of gdp")
        self.assertEqual(self.text("#figure-relative"), f"{answer['relative_time']:.3f}")
        self.assertEqual(self.text("#figure-steps"), str(answer["steps"]))
        self.assertEqual(self.texts("#searches h3")[0], "Step time of samples, in multiples of the expert’s")
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#searches canvas")), 2)
        points = data_of((self.folder / "train.html").read_text())["results"][0]["training"]
        self.assertEqual(points["step"], [1, 2, 3, 4])
        self.assertEqual(points["relative_time"][-1], answer["relative_time"])
        self.emplace("report train.html place.html -o mixed.html")
        self.open("mixed.html")
        self.assertIn("2 results", self.text("h1"))

    def test_a_comparison_can_be_sorted(self):
        self.emplace("compare fork.json -c pair.yaml --placers heuristic,metis --report compare.html")
        self.open("compare.html")
        runs = data_of((self.folder / "compare.html").read_text())["results"][0]["comparison"]["runs"]
        self.assertEqual(len(self.texts("#searches tbody tr")), len(runs))
        placer = lambda: self.text("#searches tbody td")
        self.assertEqual(placer(), runs[0]["placer"])
        self.find("#searches thead th button").click()
        self.assertEqual(placer(), min(run["placer"] for run in runs))

    def test_simulated_and_divided(self):
        self.emplace("simulate fork.json one.json -c pair.yaml --report simulate.html"
                     if (self.folder / "one.json").exists() else
                     "place fork.json -c pair.yaml --placer single -o one.json --report simulate.html")
        self.open("simulate.html")
        self.assertTrue(self.text("#figure-time"))
        self.emplace("partition zoo:alexnet:batch=8 -c 2xp100 --method tofu --time 1s --report partition.html")
        self.open("partition.html")
        result = data_of((self.folder / "partition.html").read_text())["results"][0]
        self.assertEqual(self.text("#figure-time"), time_text(result["partition"]["step_ns"]))
        self.assertIn("dimension", self.text("#map .legend"))
        change, = [change for change in result["answer"]["explanation"]["sensitivities"]["list"]
                   if change["resource"] == "bandwidth"]
        self.assertEqual(self.text("#help [data-what=bandwidth]"), time_text(change["step_ns"]))
        self.assertIn("with this partition", self.text("#help"))
        self.assertNotIn("searches", result)  # Tofu evaluates nothing
        self.emplace("partition zoo:stacked-rnn:layers=1,hidden=16,sequence=2,batch=4 -c 2xp100 --method data-parallel "
                     "--report outputs.html")
        cuts = data_of((self.folder / "outputs.html").read_text())["results"][0]["cuts"]["names"]
        self.assertIn("output 1: whole everywhere; output 2: dimension 0 in 2", cuts)
        self.emplace("partition zoo:alexnet:batch=8 -c 2xp100 --evaluations 12 --report searched.html")
        self.open("searched.html")
        result = data_of((self.folder / "searched.html").read_text())["results"][0]
        course, = result["searches"]
        self.assertEqual(course["points"][-1][2], result["partition"]["step_ns"])
        self.assertIn(f"{course['points'][-1][1]} plans were evaluated", self.text("#searches"))

    def test_an_executed_step_says_what_would_help(self):
        if "learned" not in self.emplace("list"):
            self.skipTest("built without libtorch")
        core = min(os.sched_getaffinity(0))
        (self.folder / "cores.yaml").write_text(
            "format: emplace.cluster/1\nname: cores\ndevices:\n" + "".join(
                f"  - {{name: cpu{i}, kind: cpu, memory: 1GiB, runs_on: 'cores {core}'}}\n" for i in range(2))
            + "links: [{from: '*', to: '*', bandwidth: 1GB/s, latency_us: 10, channel: out}]\n")
        model = "zoo:stacked-rnn:layers=1,hidden=16,sequence=2,batch=4 -c cores.yaml"
        self.emplace(f"place {model} -p round_robin --use-cpu -o turns.json")
        self.emplace(f"run {model.replace(' -c', ' turns.json -c')} --steps 2 --warm-up 1 --report run.html")
        self.open("run.html")
        executed = data_of((self.folder / "run.html").read_text())["results"][0]["execution"]
        shown = self.texts("#measured-devices tbody tr")
        for line, device in zip(shown, executed["devices"], strict=True):
            self.assertIn(bytes_text(device["peak_bytes"]), line)
            self.assertIn(bytes_text(device["predicted_peak_bytes"]), line)
        self.assertGreater(len(executed["warnings"]), 0)  # the devices share a core
        self.assertEqual(self.texts("#gain .warning"), [f"Note: {text}." for text in executed["warnings"]])
        self.assertRegex(self.text("#help"), "Each simulated with this placement, against .* as predicted")
        change = data_of((self.folder / "run.html").read_text())["results"][0]["answer"]["explanation"]["sensitivities"]
        self.assertEqual(self.text("#help [data-what=bandwidth]"), time_text(next(
            entry["step_ns"] for entry in change["list"] if entry["resource"] == "bandwidth")))

    def test_placements_that_were_executed_say_how_long_they_took(self):
        data = json.loads(json.dumps(self.data))
        answer = data["results"][0]["answer"]
        predicted = answer["step_ns"] / 1e6
        answer["measured"] = [
            {"origin": "auto", "predicted_ms": predicted, "measured_ms": 2 * predicted,
             "measured_ms_quartiles": [1.5 * predicted, 2.5 * predicted]},
            {"origin": "heft", "predicted_ms": 1, "failure": "out of memory"}]
        (self.folder / "measured.json").write_text(json.dumps(data))
        self.emplace("report measured.json -o measured.html")
        self.open("measured.html")
        self.assertEqual(self.text("#figure-measured"), f"{2 * predicted:#.4g} ms")
        self.assertEqual(self.text("#figure-ratio"), "0.50")
        self.assertIn("predicted step time", self.text("#gain"))
        first, second = self.texts("#candidates tbody tr")
        self.assertIn(f"auto {2 * predicted:#.4g} ms {1.5 * predicted:#.4g} ms and {2.5 * predicted:#.4g} ms", first)
        self.assertIn("heft: failed: out of memory", second)
        self.emplace("report measured.json place.html -o measured-beside.html")
        self.open("measured-beside.html")
        self.assertIn(f"measured {2 * predicted:#.4g} ms", self.texts("#several tbody tr"))

    def test_a_loss_that_is_no_number_is_said(self):
        execution = {"warnings": [], "steps": 2, "step_ms": 1, "step_ms_quartiles": [1, 1], "predicted_ms": 1,
                     "predicted_ratio": 1, "oracle_ms": 1, "oracle_ratio": 1, "drift": None, "losses": [2.5, None],
                     "devices": [], "types": []}
        data = json.loads(json.dumps(self.data))
        data["results"][0].update(kind="run", execution=execution)
        (self.folder / "diverged.json").write_text(json.dumps(data))
        self.emplace("report diverged.json -o diverged.html")
        self.open("diverged.html")
        self.assertIn("The loss was 2.50000 in the first step, not a number in the last", self.text("#gain"))

    def test_what_json_says_of_several_clusters_is_shown(self):
        (self.folder / "slow.yaml").write_text(PAIR.replace("10GB/s", "1GB/s"))
        clusters = self.emplace("compare fork.json -c pair.yaml -c slow.yaml --placers heft --evaluations 5 --json")
        (self.folder / "clusters.json").write_text(json.dumps(clusters))
        self.emplace("report clusters.json place.html -o clusters.html")
        self.open("clusters.html")
        self.assertEqual(self.text("#figure-time"), time_text(clusters["clusters"][0]["step_ns"]))
        for row in clusters["clusters"]:
            self.assertIn(f"on {row['cluster']}", self.text("#several"))
            self.assertIn(time_text(row["step_ns"]), self.text("#several"))

    def test_what_cannot_be_shown_is_refused(self):
        (self.folder / "odd.json").write_text('{"format": "emplace.graph/1"}')
        (self.folder / "many.jsonl").write_text("[0, 0, 0, 0]\n")
        for arguments, expected in [
            ("report odd.json -o refused.html", "odd.json"),
            ("report missing.html -o refused.html", "missing.html"),
            ("simulate fork.json many.jsonl -c pair.yaml --report refused.html", "--report is of one placement"),
            ("compare fork.json -c pair.yaml -c pair.yaml --trace refused.html", "several clusters"),
            ("place fork.json -c pair.yaml --report nowhere/refused.html", "nowhere"),
        ]:
            done = subprocess.run([EMPLACE, *arguments.split()], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(expected, done.stderr, arguments)
            self.assertFalse((self.folder / "refused.html").exists(), arguments)


if __name__ == "__main__":
    unittest.main()
