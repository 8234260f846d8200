"""Translating 1,000 sentences, beam 5 and greedy, against `transformers` and CTranslate2.

    python benchmarks/decoding.py                     # 6.4M weights drawn at random, 16 tokens each
    python benchmarks/decoding.py --model runs/mine   # a model of yours, which ends by itself

One model of the same numbers for all, two threads, sources of 8 to 23 tokens. Weights drawn at
random never end a sentence, so that every contestant computes the same 16 steps: what regard
gains by dropping finished sentences is not in these numbers. `transformers` gets its sentences
sorted by length, 64 at a time, in the type that its users get without asking (float32) and in
bfloat16. CTranslate2 takes part where it is installed. Memory is the growth of the largest
resident set of a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measure import interleaved_medians

BATCH = 64
NEW_TOKENS = 16
THREADS = 2


def drawn_model(folder: Path) -> None:
    """A causal Llama of 6.4M weights and 6,000 tokens."""
    import torch
    from tokenizers import Tokenizer, models

    from regard.model import Config, Transformer, save

    torch.manual_seed(0)
    words = {f"t{number}": number for number in range(6000)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="t0"))
    model = Transformer(Config(vocabulary=6000, source_mask="causal"))
    save(folder, model, files={"tokenizer.json": tokenizer.to_str()})


def drawn_sources(many: int, vocabulary: int) -> list[list[int]]:
    import torch

    rng = torch.Generator().manual_seed(1)
    lengths = torch.randint(8, 24, (many,), generator=rng).tolist()
    return [torch.randint(4, vocabulary, (n,), generator=rng).tolist() for n in lengths]


def regards(folder: Path, sources: list[list[int]], beam: int, dtype: str, new: int) -> Any:
    import torch

    from regard.model import load
    from regard.translation.decoding import Search, search

    model = load(folder, getattr(torch, dtype))
    how = Search(beam=beam, longest=new)
    return lambda: search(model, sources, how)


def theirs(folder: Path, sources: list[list[int]], beam: int, dtype: str, new: int) -> Any:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    config = model.config
    rows = sorted(([1, *source, 2] for source in sources), key=len)
    limit = {"max_new_tokens": new} if new else {"max_new_tokens": 64}

    def generate() -> None:
        for start in range(0, len(rows), BATCH):
            some = rows[start : start + BATCH]
            width = max(map(len, some))
            ids = torch.tensor([[config.pad_token_id] * (width - len(row)) + row for row in some])
            seen = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in some])
            model.generate(ids, attention_mask=seen, num_beams=beam, do_sample=False, **limit)

    return generate


def ctranslate2s(folder: Path, sources: list[list[int]], beam: int, dtype: str, new: int) -> Any:
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    converted = folder / "ct2"
    if not converted.exists():
        TransformersConverter(str(folder)).convert(str(converted))
        words = json.loads((converted / "config.json").read_text())
        words |= {"unk_token": "t0", "bos_token": "t1", "eos_token": "t3"}
        (converted / "config.json").write_text(json.dumps(words))
    generator = ctranslate2.Generator(
        str(converted), compute_type=dtype, intra_threads=THREADS, inter_threads=1
    )
    rows = [[f"t{token}" for token in (1, *source, 2)] for source in sources]
    limit = {"max_length": new, "min_length": new} if new else {"max_length": 64}
    return lambda: generator.generate_batch(
        rows, beam_size=beam, max_batch_size=BATCH, include_prompt_in_result=False, **limit
    )


CONTESTANTS: dict[str, tuple[Callable[..., Any], str]] = {
    "regard": (regards, "bfloat16"),
    "regard, float32": (regards, "float32"),
    "transformers": (theirs, "float32"),
    "transformers, bfloat16": (theirs, "bfloat16"),
    "CTranslate2": (ctranslate2s, "float32"),
    "CTranslate2, int8": (ctranslate2s, "int8"),
}


def present() -> list[str]:
    from importlib.util import find_spec

    return [name for name in CONTESTANTS if "CTranslate2" not in name or find_spec("ctranslate2")]


def memory(name: str, folder: Path, many: int, beam: int, new: int) -> float:
    """Megabytes by which the resident set of a new process grows while it translates."""
    words = [sys.executable, __file__, "--alone", name, "--model", str(folder),
             "--sentences", str(many), "--beam", str(beam), "--new", str(new)]  # fmt: skip
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def alone(name: str, folder: Path, sources: list[list[int]], beam: int, new: int) -> None:
    make, dtype = CONTESTANTS[name]
    translate = make(folder, sources, beam, dtype, new)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a checkpoint that transformers can load")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--beam", type=int)
    parser.add_argument("--new", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(THREADS)
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.model or Path(made) / "drawn"
        if arguments.model is None:
            drawn_model(folder)
        new = arguments.new if arguments.new is not None else 0 if arguments.model else NEW_TOKENS
        vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
        sources = drawn_sources(arguments.sentences, vocabulary)
        if arguments.alone:
            alone(arguments.alone, folder, sources, arguments.beam, new)
            return
        found = {}
        for beam in (arguments.beam,) if arguments.beam else (5, 1):
            ready = {}
            for name in present():
                make, dtype = CONTESTANTS[name]
                ready[name] = make(folder, sources, beam, dtype, new)
            seconds = interleaved_medians(ready, arguments.runs)
            kind = "greedy" if beam == 1 else f"beam {beam}"
            print(f"\n{arguments.sentences:,} sentences, {kind}")
            grown = {name: memory(name, folder, arguments.sentences, beam, new) for name in seconds}
            for name, took in seconds.items():
                print(f"{name:24} {took:8.2f} s   {took / seconds['regard']:5.2f}x"
                      f"   {grown[name]:7.0f} MB")  # fmt: skip
            found[f"beam {beam}"] = {"seconds": seconds, "megabytes": grown}
    print(json.dumps({"cores": os.cpu_count(), "sentences": arguments.sentences, **found}))


if __name__ == "__main__":
    main()
