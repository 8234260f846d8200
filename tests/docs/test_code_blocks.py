"""Runs the code blocks of README.md and docs/, top to bottom, and compares their output.

- A `python` block runs in the namespace of its file; a `text` block right after it is exactly
  what it prints.
- In a `console` block, or any shell block that begins with `$ `, each `$ ` line is a command;
  the lines below it, or a `text` block right after the block, are exactly its output.

All blocks of a file share one empty folder. Other blocks are prose.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = {"bash", "console", "sh", "shell"}
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>\w*)[^\n`]*\n"
    r"(?P<body>.*?)^(?P=indent)(?P=ticks) *$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text and first line, and the `text` block right after it."""

    language: str
    body: str
    line: int
    expected: str | None


@dataclass(frozen=True)
class Command:
    """A line after `$ `, with the output that the document shows for it, if any."""

    text: str
    line: int
    expected: str | None


def blocks(markdown: str) -> Iterator[Block]:
    fences = list(FENCE.finditer(markdown))
    for fence, following in zip_longest(fences, fences[1:]):
        expected = None
        if following and following["language"] == "text":
            between = markdown[fence.end() : following.start()]
            expected = textwrap.dedent(following["body"]) if not between.strip() else None
        first_line = markdown.count("\n", 0, fence.start("body")) + 1
        yield Block(fence["language"], textwrap.dedent(fence["body"]), first_line, expected)


def commands(block: Block) -> Iterator[Command]:
    found: list[tuple[str, int, list[str]]] = []
    for line, text in enumerate(block.body.splitlines(), start=block.line):
        if text.startswith("$ "):
            found.append((text[2:], line, []))
        else:
            found[-1][2].append(text)
    for text, line, output in found:
        shown = "".join(f"{each}\n" for each in output) if output else None
        is_last = line == found[-1][1]
        yield Command(text, line, shown or (block.expected if is_last else None))


def output_of_python(block: Block, document: Path, namespace: dict[str, Any]) -> str:
    padded = "\n" * (block.line - 1) + block.body  # so that a traceback names the right line
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(padded, str(document), "exec"), namespace)
    return printed.getvalue()


def output_of_shell(command: Command, document: Path) -> str:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        ["bash", "-c", command.text],
        env={**os.environ, "PATH": programs},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    where = f"{document.name}:{command.line}: {command.text}"
    assert finished.returncode == 0, f"{where} ended with {finished.returncode}\n{finished.stdout}"
    return finished.stdout


def run_document(document: Path) -> None:
    """Run every block in order; the first difference from what the document shows fails."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.language == "python":
            printed = output_of_python(block, document, namespace)
            if block.expected is not None:
                assert printed == block.expected, f"{document.name}:{block.line}"
        elif block.language in SHELLS and block.body.startswith("$ "):
            for command in commands(block):
                printed = output_of_shell(command, document)
                if command.expected is not None:
                    assert printed == command.expected, f"{document.name}:{command.line}"


@pytest.fixture(autouse=True)
def plain_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for variable in ("FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document(document: Path) -> None:
    run_document(document)


RIGHT = {
    "namespace is shared": """
```python
a = 2
```

```python
print(a * 3)
```
```text
6
```
""",
    "text that is not right after": """
```python
print(1)
```
prose
```text
2
```
""",
    "shell": """
```console
$ echo one
one
$ echo two > file
$ cat file
two
```
""",
    "shell, text after": r"""
```sh
$ printf 'a\n\nb\n'
```

```text
a

b
```
""",
    "without a prompt": """
```sh
exit 1
```
""",
    "indented": """
1. item

    ```python
    print("x")
    ```

    ```text
    x
    ```
""",
    "folder is shared": """
```sh
$ echo 7 > n
```
```python
import os
print(sorted(os.listdir()))
```
```text
['n', 'page.md']
```
""",
}
WRONG = {
    "python output": """
```python
print(1)
```
```text
2
```
""",
    "missing output": """
```python
print(1)
```
```text
1
2
```
""",
    "shell output": """
```console
$ echo one
two
```
""",
    "shell, text after": """
```sh
$ echo one
```
```text
two
```
""",
    "second command": """
```console
$ echo one
one
$ echo two
one
```
""",
    "shell fails": """
```console
$ exit 3
```
""",
}


def write(folder: Path, markdown: str) -> Path:
    document = folder / "page.md"
    document.write_text(markdown, encoding="utf-8")
    return document


@pytest.mark.parametrize("markdown", RIGHT.values(), ids=RIGHT.keys())
def test_right_pages_pass(markdown: str, tmp_path: Path) -> None:
    run_document(write(tmp_path, markdown))


@pytest.mark.parametrize("markdown", WRONG.values(), ids=WRONG.keys())
def test_wrong_pages_fail(markdown: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:\d"):
        run_document(write(tmp_path, markdown))


def test_a_traceback_names_the_line_of_the_document(tmp_path: Path) -> None:
    page = write(tmp_path, "# Title\n\n```python\nfine = 1\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_document(page)
    assert caught.traceback[-1].lineno == 4  # counted from 0
