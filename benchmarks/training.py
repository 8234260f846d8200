"""Real tokens a second (padding not counted) and memory of training, at equal parameters.

    python benchmarks/training.py [--data-dir DATA] [--joeynmt PYTHON] [--seconds 20] [--rounds 3]

On multi30k where --data-dir or $REGARD_DATA has it, else on pocket. Against the Trainer of
`transformers` on a Llama of the same sizes and rows of tokens: with its defaults; with bfloat16,
length grouping and a batch of about as many tokens; and that compiled. And against JoeyNMT 2.3, an
encoder and a decoder with as many weights, on the same pieces, in an environment of its own:

    python -m venv joey && joey/bin/pip install joeynmt==2.3.0 torch==2.13.0 importlib_metadata

Each contestant has a process of its own, whose largest memory is told; they take turns, and medians
are over the rounds.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _measure import Clock, Enough

SIZES = {"layers": 6, "vocabulary": 6000}
OURS = {
    "regard": {"optimizer": "adamw", "batch_tokens": 4096},  # the optimizer of the others
    "regard, Muon": {},  # as the recipe is: slower a token, and far fewer tokens are needed
}
DEFAULTS, BETTER, COMPILED = "Trainer", "Trainer, bfloat16", "Trainer, bfloat16, compiled"
JOEY = "JoeyNMT"
CONTESTANTS = (*OURS, DEFAULTS, BETTER, COMPILED, JOEY)
WARM = {COMPILED: 40}  # updates until most shapes are compiled
Found = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=os.environ.get("REGARD_DATA", ""))
    parser.add_argument("--joeynmt", metavar="PYTHON", help="the python that has JoeyNMT")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=CONTESTANTS, action="append")
    parser.add_argument("--one", choices=CONTESTANTS, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.one:
        print(json.dumps(measured(said.one, said)))
        return
    names = said.only or [name for name in CONTESTANTS if name != JOEY or said.joeynmt]
    found: dict[str, list[Found]] = {name: [] for name in names}
    for _ in range(said.rounds):
        for name in names:
            found[name].append(in_its_process(name))
    table = {
        name: {what: statistics.median(each[what] for each in rounds) for what in rounds[0]}
        for name, rounds in found.items()
    }
    for name, each in table.items():
        print(f"{name:28} {each['tokens_per_second']:8,.0f} real tokens/s "
              f"{each['megabytes']:6,.0f} MB {each['parameters']:,} parameters")  # fmt: skip
    ratios = {
        name: table["regard"]["tokens_per_second"] / each["tokens_per_second"]
        for name, each in table.items() if "regard" in table
    }  # fmt: skip
    corpus = "multi30k" if said.data_dir else "pocket"
    print(json.dumps({"corpus": corpus, "found": table, "regard_is_faster_by": ratios,
                      "rounds": said.rounds}))  # fmt: skip


def in_its_process(name: str) -> Found:
    command = [sys.executable, __file__, "--one", name, *sys.argv[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(name: str, said: argparse.Namespace) -> Found:
    from regard.translation.batches import tokenized
    from regard.translation.corpora import read_corpus
    from regard.translation.recipes import read_recipe
    from regard.translation.tokenizer import Tokenizer

    recipe = read_recipe("multi30k").changed({**SIZES, **OURS.get(name, {})})
    where = {"data_dir": said.data_dir} if said.data_dir else {"corpus": "pocket"}
    recipe = recipe.changed(where)
    corpus = read_corpus(recipe)
    tokenizer = Tokenizer.trained((t for pair in corpus.train for t in pair), recipe.vocabulary)
    rows = tokenized(corpus.train, tokenizer, recipe.longest)
    if name == JOEY:
        return by_joeynmt(rows, len(tokenizer), said)
    clock = Clock(said.seconds, WARM.get(name, 8))
    if name in OURS:
        parameters = train_ours(recipe, corpus, tokenizer, clock)
    else:
        parameters = train_theirs(recipe, rows, clock, name)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "tokens_per_second": clock.speed(), "megabytes": megabytes, "parameters": parameters
    }  # fmt: skip


def by_joeynmt(rows: Any, vocabulary: int, said: argparse.Namespace) -> Found:
    """Our pieces as its words, so that both train on the same tokens."""
    with tempfile.TemporaryDirectory() as folder:
        sides = {"fr": [], "en": []}
        for row, source in zip(rows.rows, rows.sources, strict=True):
            sides["fr"].append(row[1 : source - 1])
            sides["en"].append(row[source:-1])
        for language, pieces in sides.items():
            text = "".join(" ".join(map("p{}".format, each)) + "\n" for each in pieces)
            Path(folder, f"train.{language}").write_text(text)
        Path(folder, "vocabulary.txt").write_text("".join(f"p{n}\n" for n in range(4, vocabulary)))
        script = Path(__file__).with_name("_joeynmt.py")
        command = [said.joeynmt, script, folder, str(said.seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def train_ours(recipe: Any, corpus: Any, tokenizer: Any, clock: Clock) -> int:
    from regard.translation.distributed import Place
    from regard.translation.runs import Run
    from regard.translation.training import Trainer

    before = 0

    def told(event: str, facts: dict[str, Any]) -> None:
        nonlocal before
        if event == "update":
            tokens, before = facts["tokens"] - before, facts["tokens"]
            if clock.over(tokens):
                raise Enough

    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        trainer = Trainer(run, recipe, corpus, tokenizer, Place(), told)
        try:
            trainer.train()
        except Enough:
            run.close()
    return sum(p.numel() for p in trainer.model.parameters())


def train_theirs(recipe: Any, rows: Any, clock: Clock, name: str) -> int:
    import torch
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    config = LlamaConfig(
        vocab_size=recipe.vocabulary, hidden_size=recipe.width, intermediate_size=704,
        num_hidden_layers=recipe.layers, num_attention_heads=recipe.heads,
        tie_word_embeddings=True, pad_token_id=0, bos_token_id=1, eos_token_id=3,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    counted = [0]

    def collated(items: list[dict[str, Any]]) -> dict[str, Any]:
        batch = rows.batch([item["at"] for item in items])
        counted[0] = batch.real
        places = torch.arange(batch.tokens.shape[1])
        mask = places < batch.lengths[:, None]
        asked = mask & (places >= batch.sources[:, None])
        labels = batch.tokens.masked_fill(~asked, -100)
        return {"input_ids": batch.tokens, "attention_mask": mask.long(), "labels": labels}

    class Stopping(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = clock.over(counted[0])

    better: dict[str, Any] = {}
    if name != DEFAULTS:
        better = {"bf16": True, "per_device_train_batch_size": 96,
                  "train_sampling_strategy": "group_by_length"}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True,
            logging_strategy="no", max_steps=100000, remove_unused_columns=False,
            torch_compile=name == COMPILED, length_column_name="length", **better,
        )  # fmt: skip
        data = [{"at": at, "length": int(rows.lengths[at])} for at in range(len(rows))]
        for item in data:
            item["input_ids"] = range(item["length"])
        Trainer(
            model, arguments, data_collator=collated, train_dataset=data, callbacks=[Stopping()]
        ).train()
    return model.num_parameters()


if __name__ == "__main__":
    main()
