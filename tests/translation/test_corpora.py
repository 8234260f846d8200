"""Corpora: every format, and what is wrong with a file is counted and told by its line."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from regard import FileError
from regard.translation import _named, corpora
from regard.translation.corpora import Report, read_corpus, read_files
from regard.translation.recipes import Recipe

PAIRS = [(f"phrase {n}", f"sentence {n}") for n in range(40)]
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def read(*paths: Path, **words: str) -> tuple[list[tuple[str, str]], dict[str, list[str]]]:
    report = Report()
    placed = read_files([str(path) for path in paths], Recipe().changed(words), report)
    return [pair for pair, _ in placed], report.found


def test_two_files(tmp_path: Path) -> None:
    (tmp_path / "a.fr").write_text("un\n\ndeux\nun\n")
    (tmp_path / "a.en").write_text("one\nempty\n \none\n")
    pairs, found = read(tmp_path / "a.fr", tmp_path / "a.en")
    assert pairs == [("un", "one")]
    assert found == {"empty": ["a.fr:2", "a.fr:3"], "duplicate": ["a.fr:4"]}


def test_unequal_files_are_an_error_with_both_counts(tmp_path: Path) -> None:
    (tmp_path / "a.fr").write_text("un\ndeux\n")
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    with pytest.raises(FileError, match=r"a\.fr has 2 lines and a\.en 3"):
        read(tmp_path / "a.fr", tmp_path / "a.en")


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.fr").write_text("un\u2028deux\x0btrois\r\nquatre\n", newline="")
    (tmp_path / "a.en").write_text("one two three\nfour\n")
    pairs, _ = read(tmp_path / "a.fr", tmp_path / "a.en")
    assert pairs == [("un\u2028deux\x0btrois", "one two three"), ("quatre", "four")]


def test_wrong_encodings_are_told_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.fr").write_bytes(b"\xef\xbb\xbfun\n\xe9t\xe9\ntrois\n")
    (tmp_path / "a.en").write_bytes(b"one\nsummer\n\xff\n")
    pairs, found = read(tmp_path / "a.fr", tmp_path / "a.en")
    assert pairs == [("un", "one")]
    assert found == {"encoding": ["a.fr:2", "a.en:3"]}


def test_tsv_with_and_without_a_header(tmp_path: Path) -> None:
    plain = tmp_path / "plain.tsv"
    plain.write_text("un\tone\nno tab\ndeux\ttwo\tmore\n")
    assert read(plain) == ([("un", "one")], {"malformed": ["plain.tsv:2", "plain.tsv:3"]})
    headed = tmp_path / "headed.tsv"
    headed.write_text("id\ten\tfr\n7\tone\tun\n8\ttwo\n")
    assert read(headed) == ([("un", "one")], {"malformed": ["headed.tsv:3"]})


def test_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [{"fr": "un", "en": "one"}, {"translation": {"fr": "deux", "en": "two"}}, {"fr": 3}, [4]]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n{broken\n")
    pairs, found = read(path)
    assert pairs == [("un", "one"), ("deux", "two")]
    assert found == {"malformed": ["pairs.jsonl:3", "pairs.jsonl:4", "pairs.jsonl:5"]}


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "pairs.parquet"
    table = {"de": ["eins", "zwei", None], "en": ["one", "two", "three"]}
    parquet.write_table(pyarrow.table(table), path)
    pairs, found = read(path, source_field="de")
    assert pairs == [("eins", "one"), ("zwei", "two")]
    assert found == {"malformed": ["pairs.parquet:3"]}
    with pytest.raises(FileError, match="fr"):
        read(path)


def test_unknown_names_and_endings_are_errors(tmp_path: Path) -> None:
    (tmp_path / "a.doc").write_text("")
    with pytest.raises(FileError, match=r"'\.doc' tells nothing"):
        read(tmp_path / "a.doc")
    with pytest.raises(FileError, match="none of the names pocket, multi30k"):
        read_corpus(Recipe(corpus="multi40k"))


def test_training_pairs_that_are_tried_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("".join(f"{fr}\t{en}\n" for fr, en in PAIRS))
    (tmp_path / "val.tsv").write_text("phrase 3\tanother sentence\n")
    recipe = Recipe(corpus=str(tmp_path / "train.tsv"), validation=str(tmp_path / "val.tsv"))
    corpus = read_corpus(recipe)
    assert corpus.validation == [("phrase 3", "another sentence")]
    assert corpus.train == [pair for pair in PAIRS if pair[0] != "phrase 3"]
    assert corpus.report.lines() == [
        "left out: 1 training pairs whose source is also in the validation or test set "
        "(train.tsv:4)"
    ]


def test_without_a_validation_set_some_targets_are_held_out_with_all_their_sources(
    tmp_path: Path,
) -> None:
    rows = [(f"{fr} {way}", en) for fr, en in PAIRS for way in "abc"]
    (tmp_path / "all.tsv").write_text("".join(f"{fr}\t{en}\n" for fr, en in rows))
    corpus = read_corpus(Recipe(corpus=str(tmp_path / "all.tsv")))
    assert corpus.validation
    assert sorted(corpus.train + corpus.validation) == sorted(rows)
    assert not {en for _, en in corpus.train} & {en for _, en in corpus.validation}


def test_more_than_a_few_places_are_counted() -> None:
    report = Report()
    for line in range(1, 1003):
        report.add("empty", f"a:{line}")
    assert report.lines() == [
        "left out: 1,002 pairs with an empty side (a:1, a:2, a:3 and 999 more)"
    ]


def test_nothing_left_is_told_with_its_reasons(tmp_path: Path) -> None:
    path = tmp_path / "all.tsv"
    path.write_bytes(b"one column\n\xff\tx\n\ty\n")
    with pytest.raises(
        FileError, match=r"no pair is left.*not a source and a target.*UTF-8.*empty"
    ):
        read_corpus(Recipe(corpus=str(path)))


def test_a_named_corpus_is_checked(tmp_path: Path) -> None:
    for part in ("train", "val", "test_2016_flickr"):
        for language in ("fr", "en"):
            (tmp_path / f"{part}.{language}").write_text("not it\n")
    with pytest.raises(FileError, match="another version than the one known by this name"):
        read_corpus(Recipe(corpus="multi30k", data_dir=str(tmp_path)))


def test_a_named_corpus_that_is_not_in_the_folder_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"train\.fr is not in"):
        read_corpus(Recipe(corpus="multi30k", data_dir=str(tmp_path)))


def test_what_is_fetched_is_unpacked() -> None:
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("fra.txt", "Go.\tVa !")
    with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
        member = tarfile.TarInfo("dev/newstest2013.fr")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"oui"))
    assert _named._unpacked("x/fra-eng.zip", zipped.getvalue(), "fra.txt") == b"Go.\tVa !"
    assert _named._unpacked("x/dev.tgz", tarred.getvalue(), "newstest2013.fr") == b"oui"
    assert _named._unpacked("x/train.fr.gz", gzip.compress(b"non"), "train.fr") == b"non"


class Home:
    """A corpus's public home, on this machine: what it sends, and how many bytes it promises."""

    def __init__(self, content: bytes, promised: int | None = None) -> None:
        self.asked: list[str] = []
        home = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                home.asked.append(self.path)
                self.send_response(200 if content else 404)
                length = len(content) if promised is None else promised
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)

    def __enter__(self) -> Home:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


TEXT = b"Bonjour.\n"


@pytest.fixture
def fetching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Home], Path]:
    """Fetches train.fr from a home, into an empty cache; the checksum is TEXT's."""
    checksum = hashlib.sha256(TEXT).hexdigest()
    monkeypatch.setattr(_named, "CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_named, "_checksums", lambda: {"multi30k/train.fr": checksum})
    monkeypatch.delenv("REGARD_DATA", raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)

    def fetch(home: Home) -> Path:
        address = f"http://127.0.0.1:{home.server.server_port}/{{file}}.gz"
        named = {"multi30k": replace(_named.NAMED["multi30k"], home=address)}
        monkeypatch.setattr(_named, "NAMED", named)
        return _named.named_file("multi30k", "train.fr", "")

    return fetch


def test_what_is_named_is_fetched_once(fetching: Callable[[Home], Path], tmp_path: Path) -> None:
    with Home(gzip.compress(TEXT)) as home:
        path = fetching(home)
        assert path == tmp_path / "cache" / "multi30k" / "train.fr"
        assert path.read_bytes() == TEXT
        assert fetching(home) == path
    assert home.asked == ["/train.fr.gz"]


@pytest.mark.parametrize(
    ("sent", "promised", "said"),
    [
        (gzip.compress(b"Bonsoir."), None, "another version than the one known"),
        (gzip.compress(TEXT)[:-9], None, "could not be fetched"),  # cut off, and none the wiser
        (gzip.compress(TEXT), 1000, "could not be fetched"),  # cut off, and it shows
        (b"<html>no</html>", None, "could not be fetched"),
        (b"", None, r"could not be fetched.*404"),
    ],
    ids=["another", "cut off", "cut off on the way", "no package", "not there"],
)
def test_a_fetch_that_fails_leaves_nothing_and_can_be_repeated(
    sent: bytes,
    promised: int | None,
    said: str,
    fetching: Callable[[Home], Path],
    tmp_path: Path,
) -> None:
    with Home(sent, promised) as home, pytest.raises(FileError, match=said):
        fetching(home)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    with Home(gzip.compress(TEXT)) as home:
        assert fetching(home).read_bytes() == TEXT


def test_a_home_that_is_not_there(fetching: Callable[[Home], Path]) -> None:
    home = Home(TEXT)
    home.server.server_close()
    with pytest.raises(FileError, match=r"could not be fetched from http.*REGARD_DATA"):
        fetching(home)


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not here")
@pytest.mark.parametrize(
    ("name", "sizes"),
    [  # lines of the files, less the reported ones
        ("multi30k", (29000, 1014, 1000)),
        ("newstest", (2051 + 2525 + 2489 + 3003, 3003, 3000)),
        ("tatoeba", (167130, 0, 0)),
    ],
)
def test_named_corpora(name: str, sizes: tuple[int, int, int]) -> None:
    corpus = read_corpus(Recipe(corpus=name, data_dir=str(DATA)))
    parts = (corpus.train, corpus.validation, corpus.test)
    left_out = sum(map(len, corpus.report.found.values()))
    assert sum(map(len, parts)) + left_out == sum(sizes)
    assert all(parts)
    assert len(corpora.REASONS) == 6
