"""What importing costs, what the stubs say, and that examples in docstrings and docs are true."""

import ast
import doctest
import importlib
import inspect
import json
import pathlib
import pkgutil
import re
import subprocess
import sys

import emplace
import pytest
from emplace import _emplace

ROOT = pathlib.Path(__file__).resolve().parents[2]
# These import what need not be installed.
MODULES = [info.name for info in pkgutil.iter_modules(emplace.__path__) if info.name not in ("gymnasium", "torch")]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_is_quick_and_loads_neither_numpy_nor_libtorch():
    code = (
        "import time; start = time.process_time(); import emplace, sys; took = time.process_time() - start;"
        "maps = open('/proc/self/maps').read();"
        "print(took, 'numpy' in sys.modules, 'libtorch' in maps or 'libc10' in maps)"
    )
    runs = [python(code).split() for _ in range(5)]
    assert all(run[1:] == ["False", "False"] for run in runs)
    # Time of the processor, as the machine may be busy.
    assert min(float(run[0]) for run in runs) <= 0.05


def test_placing_does_not_load_libtorch():
    code = (
        "import emplace; emplace.place(emplace.compile('zoo:alexnet', '2xp100'), seconds=0.2);"
        "print('libtorch' in open('/proc/self/maps').read())"
    )
    assert python(code) == "False"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    if name == "_execute" and not any(info.family == "learned" for info in emplace.list_placers()):
        pytest.skip("built without libtorch")
    module = importlib.import_module(f"emplace.{name}")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_examples_in_docstrings_of_the_compiled_part():
    finder, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    count = 0
    for name in dir(_emplace):
        text = getattr(_emplace, name).__doc__ or ""
        if ">>>" in text:
            runner.run(finder.get_doctest(text, {}, name, None, 0))
            count += 1
    assert count > 5 and runner.failures == 0
    assert doctest.testmod(emplace).failed == 0


def stub_names():
    tree = ast.parse((ROOT / "python/emplace/_emplace.pyi").read_text())
    classes, functions = {}, {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            classes[node.name] = {
                item.name if isinstance(item, ast.FunctionDef) else item.target.id
                for item in node.body
                if isinstance(item, (ast.FunctionDef, ast.AnnAssign))
            }
        elif isinstance(node, ast.FunctionDef):
            arguments = node.args
            functions[node.name] = [a.arg for a in arguments.args + arguments.kwonlyargs]
    return classes, functions


def test_stubs_have_the_names_of_the_compiled_part():
    classes, functions = stub_names()
    public = {name for name in dir(_emplace) if not name.startswith("_")}
    assert set(classes) | set(functions) == public
    for name, members in classes.items():
        there = {m for m in vars(getattr(_emplace, name)) if not m.startswith("_")}
        assert there == {m for m in members if not m.startswith("_")}, name


def test_stubs_have_the_arguments_of_the_compiled_part():
    for name, arguments in stub_names()[1].items():
        signature = getattr(_emplace, name).__doc__.splitlines()[0]
        inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
        there = re.findall(r"(?:^|, )\*?\*?(\w+):", inside)
        assert there == arguments, signature


def test_types_are_checked():
    pytest.importorskip("mypy")
    files = [str(path) for path in sorted((ROOT / "python/emplace").glob("*.py"))]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", "--ignore-missing-imports", *files],
        cwd=ROOT / "python", capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stdout


def test_everything_public_is_described():
    for name in emplace.__all__:
        assert inspect.getdoc(getattr(emplace, name)), name


def blocks(page: str):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)


def executable(block: str) -> bool:
    """Without libtorch nothing can be executed."""
    learns = any(info.family == "learned" for info in emplace.list_placers())
    return learns or not re.search(r"emplace\.(run|profile)\(", block)


def test_code_of_the_tutorial_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    assert len(blocks("docs/python.md")) > 5
    for number, block in enumerate(blocks("docs/python.md"), 1):
        if executable(block):
            exec(compile(block, f"docs/python.md, block {number}", "exec"), names)


def test_the_notebook_is_the_tutorial():
    made = subprocess.run(
        [sys.executable, ROOT / "tools/make_notebook.py", ROOT / "docs/python.md"],
        capture_output=True, text=True, check=True,
    ).stdout
    assert made == (ROOT / "docs/python.ipynb").read_text(), "run tools/make_notebook.py"


def shown(value) -> str:
    """As a notebook shows what a cell ends with."""
    if value is None:
        return ""
    html = getattr(value, "_repr_html_", None)
    return html() if html else repr(value)


def test_the_notebook_runs_without_a_server(tmp_path, monkeypatch):
    notebook = json.loads((ROOT / "docs/python.ipynb").read_text())
    assert notebook["nbformat"] == 4 and len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    pictures = 0
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or not executable(source):
            continue
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell["id"], "exec"), names)
        if last is not None:
            pictures += "<svg" in shown(eval(compile(ast.Expression(last.value), cell["id"], "eval"), names))
    assert pictures > 0
