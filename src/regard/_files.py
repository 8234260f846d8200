"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from pathlib import Path

from regard._errors import FileError


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write to a temporary name beside the target, then rename it into place."""
    import tempfile  # with random and shutil it would cost every start a few milliseconds

    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    if target.is_dir():
        raise FileError(f"write: {str(path)!r} is a folder; name a file in it")
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileError(f"write: {str(path)!r} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(_mode(target))
        Path(temporary).replace(target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise FileError(f"write: {str(path)!r} cannot be written: {error.strerror}") from error
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """The permissions the file has, or that a new file gets; mkstemp's own are private."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
