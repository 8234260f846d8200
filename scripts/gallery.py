"""Runs the scripts in examples/gallery and makes the gallery of the documents of what they draw.

    python scripts/gallery.py docs/gallery

A page stands there afterwards with every picture, what its script printed, and the script.
"""

import contextlib
import io
import os
import runpy
import shutil
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent / "examples" / "gallery"


def entry(script: Path) -> str:
    """Run a script in the current folder; its section of the page."""
    before = set(Path().glob("*.svg"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(script))
    code = script.read_text(encoding="utf-8")
    title = code.partition('"""')[2].partition('"""')[0].strip().rstrip(".")
    pictures = sorted(set(Path().glob("*.svg")) - before)
    if not pictures:
        sys.exit(f"gallery: {script.name} drew nothing")
    shown = "\n".join(f"![{title}]({picture})" for picture in pictures)
    # `py`, not `python`: the tests of the documents need not run it once more.
    return f"## {title}\n\n{shown}\n\n{printed.getvalue()}\n```py\n{code}```\n"


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit(__doc__)
    folder = Path(arguments[0])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    scripts = sorted(SCRIPTS.glob("*.py"))
    sections = [entry(script) for script in scripts]
    intro = (
        "# Gallery\n\nEvery picture was drawn when these documents were made, by the script below "
        "it. Points and bars were measured, lines were predicted.\n"
    )
    Path("index.md").write_text("\n".join([intro, *sections]), encoding="utf-8")
    print(f"gallery: {len(scripts)} scripts")


if __name__ == "__main__":
    main(sys.argv[1:])
