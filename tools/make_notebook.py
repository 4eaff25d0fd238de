#!/usr/bin/env python3
"""Makes a notebook of a page of docs: text and the blocks of Python that tests run, as cells.

    tools/make_notebook.py docs/python.md > docs/python.ipynb
"""

import json
import re
import sys


def cell(number, kind, text):
    made = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.strip("\n").splitlines(True)}
    return {**made, "execution_count": None, "outputs": []} if kind == "code" else made


def notebook(page):
    cells = []
    for part in re.split(r"(^```python\n.*?^```$)", page, flags=re.M | re.S):
        block = re.fullmatch(r"```python\n(.*?)```", part, re.S)
        if part.strip():
            cells.append(cell(len(cells), "code" if block else "markdown", block[1] if block else part))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
            "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(json.dumps(notebook(file.read()), indent=1, ensure_ascii=False))
