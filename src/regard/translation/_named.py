"""Corpora with a name: where their files lie, and what they must contain."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from http.client import HTTPException
from importlib.resources import files
from pathlib import Path

from regard._errors import FileError
from regard._files import write_atomically

DATA_DIR = "REGARD_DATA"
CACHE = "~/.cache/regard"
# What the way here and a damaged package can raise.
FETCHING = (
    OSError, HTTPException, EOFError, KeyError, StopIteration, zlib.error, zipfile.BadZipFile,
    tarfile.TarError,
)  # fmt: skip


@dataclass(frozen=True)
class Named:
    """The parts of a corpus, its public home (`{file}` is what is wanted), and its columns."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    home: str
    columns: tuple[int, int] | None = None


NAMED = {
    "multi30k": Named(
        ("train",), ("val",), ("test_2016_flickr",),
        "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/{file}.gz",
    ),
    "tatoeba": Named(
        ("fra.txt",), (), (), "https://www.manythings.org/anki/fra-eng.zip", columns=(1, 0)
    ),
    "newstest": Named(
        ("news-test2008", "newstest2009", "newstest2010", "newstest2011"), ("newstest2012",),
        ("newstest2013",), "https://www.statmt.org/wmt14/dev.tgz",
    ),
}  # fmt: skip


def named_file(corpus: str, name: str, data_dir: str) -> Path:
    """Where the file lies: in `data_dir`, in $REGARD_DATA, or fetched from its home once."""
    given = data_dir or os.environ.get(DATA_DIR, "")
    folders = [Path(given)] if given else []
    kept = Path(CACHE).expanduser() / corpus
    for folder in (*(place / corpus for place in folders), *folders, kept):
        path = folder / name
        if path.is_file():
            _check(path, f"{corpus}/{name}", path.read_bytes())
            return path
    if given:
        raise FileError(f"corpus {corpus}: {name} is not in {given!r}, nor in {corpus}/ there")
    kept.mkdir(parents=True, exist_ok=True)
    content = _fetched(NAMED[corpus].home.format(file=name), name)
    _check(kept / name, f"{corpus}/{name}", content)
    write_atomically(kept / name, content)
    return kept / name


def _check(path: Path, name: str, content: bytes) -> None:
    wanted = _checksums()[name]
    if hashlib.sha256(content).hexdigest() != wanted:
        raise FileError(
            f"corpus: {path} is another version than the one known by this name (its SHA-256 is "
            f"not {wanted[:12]}…); to use it all the same, pass it as a file of your own"
        )


def _checksums() -> dict[str, str]:
    text = files(__package__).joinpath("named.sha256").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines())
    return {name: checksum for checksum, name in rows}


def _fetched(address: str, name: str) -> bytes:
    """One file from its home, taken out of what it is packed in."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            packed: bytes = answer.read()
        return _unpacked(address, packed, name)
    except FETCHING as error:
        raise FileError(
            f"corpus: {name} could not be fetched from {address} ({error}); lay the files into a "
            f"folder and name it with data_dir or ${DATA_DIR}"
        ) from error


def _unpacked(address: str, packed: bytes, name: str) -> bytes:
    if address.endswith(".tgz"):
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            member = next(each for each in archive if Path(each.name).name == name)
            content = archive.extractfile(member)
            assert content is not None
            return content.read()
    if address.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            return archive.read(name)
    return gzip.decompress(packed)
