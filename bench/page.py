#!/usr/bin/python3
"""How large a page is, how soon it shows something, and how fluid it is: python3-selenium and chromium.

Usage: bench/page.py EMPLACE [PAGE.html]. Without a page, one of examples/gnmt4-b256.json.gz on 4xp100 is written."""

import pathlib
import subprocess
import sys
import tempfile
import time

from selenium import webdriver

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Calls `move` once a frame for two seconds; how many frames a second there were, and the slowest.
FRAMES = """
const done = arguments[arguments.length - 1];
const canvas = document.querySelector(arguments[0]);
const bounds = canvas.getBoundingClientRect();
const fire = (type, x) => canvas.dispatchEvent(new PointerEvent(type,
  {bubbles: true, pointerId: 1, clientX: bounds.left + x, clientY: bounds.top + 40}));
canvas.setPointerCapture = () => {};
const begin = performance.now();
let last = begin, slowest = 0, frames = 0, x = bounds.width / 2;
fire("pointerdown", x);
const step = (now) => {
  slowest = Math.max(slowest, frames > 0 ? now - last : 0);
  last = now;
  ++frames;
  x += 6 * Math.sin(frames / 9);
  fire("pointermove", x);
  if (now - begin < 2000) return requestAnimationFrame(step);
  fire("pointerup", x);
  done([1000 * frames / (now - begin), slowest]);
};
requestAnimationFrame(step);
"""


def open_browser():
    options = webdriver.ChromeOptions()
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"]:
        options.add_argument(argument)
    return webdriver.Chrome(service=webdriver.chrome.service.Service("/usr/bin/chromedriver"), options=options)


def main():
    emplace = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(folder) / "page.html"
        if len(sys.argv) <= 2:
            subprocess.run([emplace, "place", ROOT / "examples/gnmt4-b256.json.gz", "-c", "4xp100", "--time", "3s",
                            "--report", page, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        print(f"page code    {(ROOT / 'web/page.html').stat().st_size / 1000:.0f} kB")
        print(f"page         {page.stat().st_size / 1e6:.2f} MB")
        browser = open_browser()
        browser.get("about:blank")
        browser.get(page.resolve().as_uri())
        while not (ready := browser.execute_script("return document.documentElement.dataset.ready")):
            time.sleep(0.02)
        paint = browser.execute_script(
            "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null")
        answered = browser.execute_script("return document.documentElement.dataset.answered")
        print(f"first paint  {paint:.0f} ms; answers after {answered} ms, all drawn after {ready} ms")
        for name, selector in [("timeline", "#timeline canvas"), ("map", "#map canvas")]:
            browser.execute_script("document.querySelector(arguments[0]).scrollIntoView({behavior: 'instant'})", selector)
            for zoomed in [False, True]:
                if zoomed:
                    for _ in range(3):
                        browser.execute_script("document.querySelector(arguments[0]).click()",
                                               f"#{name} .buttons button")
                    time.sleep(0.2)
                rate, slowest = browser.execute_async_script(FRAMES, selector)
                print(f"{name:9} {'zoomed in' if zoomed else 'whole':10} {rate:5.0f} frames a second while moving, "
                      f"the slowest {slowest:.0f} ms")
        browser.quit()


if __name__ == "__main__":
    main()
