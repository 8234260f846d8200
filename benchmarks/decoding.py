"""Translating 1,000 sentences, beam 5 and greedy, against `transformers` and CTranslate2.

    python benchmarks/decoding.py --data-dir DATA            # trains a model first, once
    python benchmarks/decoding.py --data-dir DATA --model runs/mine

The test set of multi30k and one checkpoint for all, on as many threads as there are cores: 6.4M
weights that see causally, so that `transformers` loads them unchanged. Without --model they are
trained for two epochs, which takes ten minutes, into runs/for-decoding, where the next run finds
them. Without the data (see docs/how-to/train.md for where it is looked for) the pocket corpus
stands in for it.

Everybody gets tokens, searches with the same beam, limit and kind of stopping, and gives tokens;
their BLEU shows that they did the same work. `transformers` gets 32 sentences at a time, padded on
the left, in the order of the file, as users do who take no more trouble; sorted by length; and
sorted in bfloat16. CTranslate2 sorts and batches by itself. Memory is the growth of the largest
resident set in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _measure import interleaved_medians

BATCH = 32
THREADS = os.cpu_count() or 1
TRAINED = Path("runs/for-decoding")
RECIPE = {"source_mask": "causal", "layers": 6, "vocabulary": 6000, "scale_embeddings": False,
          "epochs": 2.0}  # fmt: skip
Rows = list[list[int]]
Contestant = Callable[[], Rows]


class Task:
    """What is to be translated, by which checkpoint, with which beam."""

    def __init__(self, folder: Path, beam: int, many: int) -> None:
        from regard.translation.corpora import read_corpus
        from regard.translation.recipes import read_recipe
        from regard.translation.tokenizer import Tokenizer

        self.folder, self.beam = folder, beam
        test = read_corpus(read_recipe(str(folder / "recipe.toml"))).test[:many]
        self.tokenizer = Tokenizer.read(folder / "tokenizer.json")
        self.sources = self.tokenizer.encode([source for source, _ in test])
        self.references = [target for _, target in test]

    def bleu(self, said: Rows) -> float:
        from regard.translation.validating import score

        return float(score(self.tokenizer.decode(said), self.references).bleu)


def regards(task: Task, dtype: str) -> Contestant:
    import torch

    from regard.model import load
    from regard.translation.decoding import Search, search

    model = load(task.folder, getattr(torch, dtype))
    how = Search(beam=task.beam)
    return lambda: [found[0].tokens for found in search(model, task.sources, how)]


def theirs(task: Task, dtype: str, by_length: bool) -> Contestant:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(task.folder, dtype=getattr(torch, dtype)).eval()
    pad = model.config.pad_token_id

    def generate() -> Rows:
        said: Rows = [[] for _ in task.sources]
        for numbers in batches(task.sources, by_length):
            rows = [[1, *task.sources[number], 2] for number in numbers]
            width = max(map(len, rows))
            ids = torch.tensor([[pad] * (width - len(row)) + row for row in rows])
            seen = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
            found = model.generate(
                ids, attention_mask=seen, num_beams=task.beam, do_sample=False,
                max_new_tokens=2 * width + 20,
            )  # fmt: skip
            for number, row in zip(numbers, found[:, width:].tolist(), strict=True):
                said[number] = row
        return said

    return generate


def batches(sources: Rows, by_length: bool) -> Iterator[list[int]]:
    numbers = list(range(len(sources)))
    if by_length:
        numbers.sort(key=lambda number: -len(sources[number]))
    for start in range(0, len(numbers), BATCH):
        yield numbers[start : start + BATCH]


def ctranslate2s(task: Task, dtype: str) -> Contestant:
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    converted = task.folder / "ct2"
    names = task.tokenizer.tokens(range(len(task.tokenizer)))
    if not converted.exists():
        TransformersConverter(str(task.folder)).convert(str(converted))
        words = json.loads((converted / "config.json").read_text())
        words |= {"unk_token": names[0], "bos_token": names[1], "eos_token": names[3]}
        (converted / "config.json").write_text(json.dumps(words))
    generator = ctranslate2.Generator(
        str(converted), compute_type=dtype, intra_threads=THREADS, inter_threads=1
    )
    rows = [[names[token] for token in (1, *source, 2)] for source in task.sources]
    limit = 2 * max(map(len, rows)) + 20

    def generate() -> Rows:
        found = generator.generate_batch(
            rows, beam_size=task.beam, max_batch_size=BATCH, include_prompt_in_result=False,
            max_length=limit,
        )  # fmt: skip
        return [each.sequences_ids[0] for each in found]

    return generate


CONTESTANTS: dict[str, tuple[Callable[..., Contestant], tuple[Any, ...]]] = {
    "regard": (regards, ("bfloat16",)),
    "regard, float32": (regards, ("float32",)),
    "transformers": (theirs, ("float32", False)),
    "transformers, sorted": (theirs, ("float32", True)),
    "transformers, sorted, bfloat16": (theirs, ("bfloat16", True)),
    "CTranslate2": (ctranslate2s, ("float32",)),
    "CTranslate2, int8": (ctranslate2s, ("int8",)),
}


def present() -> list[str]:
    from importlib.util import find_spec

    return [name for name in CONTESTANTS if "CTranslate2" not in name or find_spec("ctranslate2")]


def made(name: str, task: Task) -> Contestant:
    make, words = CONTESTANTS[name]
    return make(task, *words)


def trained(data_dir: str) -> Path:
    """The checkpoint of this benchmark, trained if it is not there yet."""
    from regard import FileError
    from regard.translation._named import named_file
    from regard.translation.recipes import read_recipe
    from regard.translation.training import train

    if not (TRAINED / "best" / "config.json").is_file():
        recipe = read_recipe("multi30k").changed({**RECIPE, "data_dir": data_dir})
        try:
            named_file("multi30k", "train.fr", data_dir)
        except FileError as missing:
            print(f"{missing}: the pocket corpus stands in for it", file=sys.stderr)
            recipe = read_recipe("pocket").changed({**RECIPE, "epochs": 1.0})
        print(f"training a model into {TRAINED}: about ten minutes", file=sys.stderr)
        train(recipe, TRAINED, lambda event, facts: None)
    return TRAINED / "best"


def memory(name: str, task: Task, many: int) -> float:
    """Megabytes by which the resident set of a new process grows while it translates."""
    words = [sys.executable, __file__, "--alone", name, "--model", str(task.folder),
             "--sentences", str(many), "--beam", str(task.beam)]  # fmt: skip
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def alone(name: str, task: Task) -> None:
    translate = made(name, task)
    before = resident("VmRSS")
    translate()
    print(resident("VmHWM") - before)


def resident(line: str) -> float:
    """Megabytes that Linux says this process holds, or has held at most."""
    for each in Path("/proc/self/status").read_text().splitlines():
        name, _, rest = each.partition(":")
        if name == line:
            return int(rest.split()[0]) / 1024
    raise SystemExit("memory is measured on Linux alone")


def compared(task: Task, said: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Prints the table of one beam."""
    names, runs = said.only or present(), said.runs
    ready = {name: made(name, task) for name in names}
    told: dict[str, Rows] = {}
    calls = {
        name: lambda name=name, contestant=contestant: told.update({name: contestant()})
        for name, contestant in ready.items()
    }
    seconds = interleaved_medians(calls, runs)
    kind = "greedy" if task.beam == 1 else f"beam {task.beam}"
    print(f"\n{len(task.sources):,} sentences, {kind}, median of {runs}; memory it grows by; BLEU")
    found = {}
    for name, took in seconds.items():
        grown = 0.0 if said.no_memory else memory(name, task, said.sentences)
        facts = {"seconds": took, "ratio": took / seconds[names[0]],
                 "megabytes": grown, "bleu": task.bleu(told[name])}  # fmt: skip
        print(f"{name:32}{took:7.2f} s {facts['ratio']:6.2f}x {facts['megabytes']:7.0f} MB"
              f" {facts['bleu']:6.1f}", flush=True)  # fmt: skip
        found[name] = facts
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default="", help="where multi30k lies")
    parser.add_argument("--model", type=Path, help="a run or checkpoint that sees causally")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--beam", type=int, help="this one alone (default: 5, then greedy)")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, help="these contestants alone")
    parser.add_argument("--no-memory", action="store_true", help="measure time alone")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    said = parser.parse_args()

    import torch

    from regard.translation.translating import find_checkpoint

    torch.set_num_threads(THREADS)
    folder = find_checkpoint(said.model) if said.model else trained(said.data_dir)
    if said.alone:
        alone(said.alone, Task(folder, said.beam, said.sentences))
        return
    found = {
        f"beam {beam}": compared(Task(folder, beam, said.sentences), said)
        for beam in ((said.beam,) if said.beam else (5, 1))
    }
    print(json.dumps({"threads": THREADS, "sentences": said.sentences, **found}))


if __name__ == "__main__":
    main()
