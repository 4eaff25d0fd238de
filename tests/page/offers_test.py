"""What pages offer to type next is taken by the program, and what they compare is of the same work.

Usage: offers_test.py EMPLACE. Exits with 77 (skipped) where there is no browser."""

import shlex
import subprocess
import unittest

from browser import EMPLACE, PageTest

NET = "zoo:alexnet:batch=8"


class Offers(PageTest):
    def offered(self, name):
        """The commands that a page has buttons for; those of "What would help?" come first."""
        self.open(name)
        return self.browser.execute_script("return [...document.querySelectorAll('button.copy')].map((b) => b.title)")

    def run_typed(self, command):
        """By a shell, as people do who paste it."""
        program, _, words = command.partition(" ")
        self.assertEqual(program, "emplace")
        done = subprocess.run(["sh", "-c", f"{shlex.quote(EMPLACE)} {words}"], cwd=self.folder, capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stderr if done.returncode else ""), (0, ""), command)
        return done.stdout

    def test_every_command_can_be_run(self):
        self.run_typed(f"emplace place {NET} -c 2xp100 -p heft --granularity layer -o start.json")
        self.run_typed("emplace zoo export alexnet:batch=8,training=false -o net.onnx")
        options = {  # a glance at partitions is for the usual placer, without rules, and of steps
            "plain": f"place {NET} -c 2xp100 --evaluations 20 -q",
            "search": f"place {NET} --cluster=2xp100 --use-cpu --sensitivity --granularity layer --start start.json "
                      "--objective latency --islands 2 --seed 5 --evaluations 20 --trace trace.json -o 'a b.json'",
            "rules": f"place {NET} -c 2xp100 --placer='hill_climb(kicks=2, chains=1)' --pin '*=gpu0,gpu1' --fuse "
                     "--scheduler fifo --evaluations 20",
            "devices": f"place {NET} -c 3xp100 -p heft --devices 2 --evaluations 20",
            "stream": f"place {NET} -c 2xp100 -p heft --objective throughput --evaluations 20",
            "hardware": f"place {NET} -c 2xp100 --scale bandwidth=2 --scale latency=0.5,memory=2 --price p100=1.5 "
                        "--evaluations 20",
            "training": "place net.onnx -c 2xp100 --training --optimizer adam --precision float16 "
                        "--colocate-gradients --in-place none --cost analytic --evaluations 20 --modules whole",
            "batches": "place zoo:alexnet -c 2xp100 --batch 4..16 --evaluations 20",
            "compare": f"compare {NET} -c 2xp100 -p heft,metis --evaluations 20 --scale bandwidth=2",
            "clusters": f"compare {NET} -c 2xp100 -c 3xp100 -p heft --evaluations 20",
            "simulate": f"simulate {NET} start.json -c 2xp100 --scale bandwidth=2",
        }
        divided = set()
        for name, words in options.items():
            with self.subTest(name):
                self.run_typed(f"emplace {words} --report {name}.html")
                commands = self.offered(f"{name}.html")
                self.assertGreater(len(commands), 2)
                for command in commands:
                    self.run_typed(command)
                divided |= {name for command in commands if command.startswith("emplace partition ")}
        self.assertGreaterEqual(divided, {"plain", "search", "hardware", "training", "batches", "clusters"})

    def test_one_more_device_of_a_preset_can_be_asked_for(self):
        self.emplace(f"place {NET} -c 2xp100 -p heft --report more.html")
        self.assertIn(f"emplace place {NET} -c 3xp100 -p heft --report more.html", self.offered("more.html"))

    def test_hardware_that_was_changed_is_changed_further(self):
        self.emplace(f"place {NET} -c 2xp100 -p heft --scale bandwidth=2 --scale bandwidth=3 --report fast.html")
        commands = self.offered("fast.html")
        self.assertTrue(any(command.endswith("--scale bandwidth=6") for command in commands), commands)
        self.assertTrue(any(command.endswith("--scale memory=2") for command in commands), commands)

    # ---- side by side

    def side_by_side(self, *asked):
        """Titles, and what is said against the best, of results with these options."""
        for i, words in enumerate(asked):
            self.emplace(f"place {words} -p heft --report side{i}.html")
        self.emplace(f"report {' '.join(f'side{i}.html' for i in range(len(asked)))} -o sides.html")
        self.open("sides.html")
        against = [text for text in self.texts("#several tbody tr") if text.startswith("against")]
        return self.texts("#several thead button"), against

    def test_what_is_other_work_is_not_compared(self):
        self.run_typed("emplace zoo export alexnet:batch=8,training=false -o side.onnx")
        plain = "side.onnx -c 2xp100"
        for other, said in ((f"{plain} --precision float16", 'precision "float16"'), (f"{plain} --training", "training true"),
                            (f"{plain} --objective throughput", "as a stream")):
            titles, against = self.side_by_side(plain, other)
            self.assertEqual(against, [], other)
            self.assertEqual(len(set(titles)), 2)
            self.assertIn(said, titles[1])
        titles, against = self.side_by_side("zoo:alexnet:batch=8 -c 2xp100", "zoo:alexnet:batch=16 -c 2xp100")
        self.assertEqual(against, [])
        self.assertIn("batch=16", titles[1])

    def test_what_is_the_same_work_is_compared(self):
        titles, against = self.side_by_side(f"{NET} -c 2xp100", f"{NET} -c 1xp100", f"{NET} -c 2xp100 --granularity layer")
        self.assertEqual(len(against), 1)
        self.assertEqual(len(set(titles)), 3)
        self.assertIn('granularity "layer"', titles[2])
        rows = self.texts("#several tbody tr")
        self.assertTrue(any(row.startswith("read with") and "layer" in row for row in rows), rows)


if __name__ == "__main__":
    unittest.main()
