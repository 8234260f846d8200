"""A base install is enough to import regard and to solve; importing it loads nothing heavy."""

import subprocess
import sys

EXTRAS = ("torch", "matplotlib", "sympy", "flint", "distributed", "pyarrow")
HEAVY = (*EXTRAS, "numpy", "rich")
# What a solution printed as text has no use for: each would slow the start of every other one.
UNUSED = (*EXTRAS, "json", "rich", "tempfile", "regard.exercises.reading", "regard.graph.cost")

REFUSE_EXTRAS = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
"""


def run_python(code: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_refusal_works() -> None:
    attempt = "try: import sympy\nexcept ModuleNotFoundError as error: print(error)"
    assert run_python(REFUSE_EXTRAS + attempt) == "No module named 'sympy'\n"


def test_importing_regard_loads_nothing_heavy() -> None:
    loaded = run_python(f"import sys, regard; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded == "[]\n"


def test_every_public_name_loads_without_the_extras() -> None:
    names = run_python(
        REFUSE_EXTRAS + "import regard\n"
        "for name in regard.__all__: getattr(regard, name)\n"
        "print(*regard.__all__)"
    )
    assert "solve" in names.split()


def test_the_base_install_solves_an_exercise() -> None:
    solution = run_python(
        REFUSE_EXTRAS + "import regard.cli\n"
        "sys.argv = ['regard', 'solve', 'unscaled-self-attention']\n"
        "sys.exit(regard.cli.main())"
    )
    assert "weights" in solution.lower()


def test_solving_loads_nothing_that_it_does_not_use() -> None:
    printed = run_python(
        "import sys, numpy\n"  # of which some versions load some of it
        f"others = set({UNUSED!r}) - sys.modules.keys()\n"
        "import regard.cli\n"
        "regard.cli.main(['solve', 'unscaled-self-attention'])\n"
        "print(sorted(others & sys.modules.keys()))"
    )
    assert printed.splitlines()[-1] == "[]"
