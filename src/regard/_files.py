"""Reading files that a user names; writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from regard._errors import FileError

if TYPE_CHECKING:
    from collections.abc import Mapping


LARGEST = 10_000_000  # bytes: nobody writes a larger assignment, or larger answers


def read_bytes(path: str | Path, what: str, most: int = LARGEST) -> bytes:
    """The content of a file; `what` is how messages call it: "solve: 'a.md'"."""
    if Path(path).is_dir():
        raise FileError(f"{what} is a folder; pass a file")
    try:
        with Path(path).open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise FileError(f"{what} cannot be read: {error.strerror}") from error
    if len(content) > most:
        raise FileError(f"{what} has more than {most:,} bytes")
    return content


def as_text(content: bytes, what: str) -> str:
    """UTF-8, with or without its mark, whose lines end with a line feed alone."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{what} is no UTF-8 text (byte {error.start}): save it as UTF-8"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_text(path: str | Path, what: str) -> str:
    return as_text(read_bytes(path, what), what)


def check_target(path: str | Path) -> None:
    """Refuse a file that cannot be written, before the work that is to be written is done."""
    target = Path(path)
    if target.is_dir():
        raise FileError(f"write: {str(path)!r} is a folder; name a file in it")
    if not os.access(target.parent, os.W_OK):
        why = "is not yours to write to" if target.parent.is_dir() else "is no folder"
        raise FileError(f"write: {str(path)!r} cannot be written: {str(target.parent)!r} {why}")


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write to a temporary name beside the target, then rename it into place."""
    target = Path(path)
    if target.is_dir():
        raise FileError(f"write: {str(path)!r} is a folder; name a file in it")
    _replace({target: content})


def write_folder(folder: str | Path, files: Mapping[str, str | bytes]) -> None:
    """Write files into a folder; all of them lie on the disk before the first gets its name.

    A folder that is new appears whole; other files of one that is there stay.
    """
    target = Path(folder)
    if target.is_dir():
        _replace({target / name: content for name, content in files.items()})
        return
    whole = target.parent / f".{target.name}.{os.getpid()}"
    try:
        whole.mkdir(parents=True)
        for name, content in files.items():
            (whole / name).write_bytes(_as_bytes(content))
        whole.rename(target)
    except OSError as error:
        raise FileError(f"write: {str(folder)!r} cannot be written: {error.strerror}") from error
    finally:
        if whole.exists():
            from shutil import rmtree

            rmtree(whole)


def _replace(files: Mapping[Path, str | bytes]) -> None:
    """Write everything under temporary names, then rename each file into place."""
    import tempfile  # with random and shutil it would cost every start a few milliseconds

    written: dict[str, Path] = {}
    try:
        for target, content in files.items():
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            written[temporary] = target
            with os.fdopen(handle, "wb") as file:
                file.write(_as_bytes(content))
            Path(temporary).chmod(_mode(target))
        for temporary, target in written.items():
            Path(temporary).replace(target)
    except OSError as error:
        raise FileError(f"write: {str(target)!r} cannot be written: {error.strerror}") from error
    finally:
        for temporary in written:
            Path(temporary).unlink(missing_ok=True)


def _as_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _mode(target: Path) -> int:
    """The permissions the file has, or that a new file gets; mkstemp's own are private."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
