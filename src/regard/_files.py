"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from regard._errors import FileError

if TYPE_CHECKING:
    from collections.abc import Mapping


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
