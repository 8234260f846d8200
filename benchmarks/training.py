"""Real tokens a second (padding not counted) of training on multi30k, at equal parameters.

    python benchmarks/training.py --data-dir DATA [--seconds 20] [--with-compiled]

Against the Trainer of `transformers` on a Llama of the same sizes and data: with its defaults, and
with bfloat16, length grouping and a batch of the same number of tokens, also compiled if asked for
(compiling takes minutes). Needs `pip install accelerate`. Both read the same rows of tokens; ours
decides everything else as the recipe says. Memory is the largest of the process so far, so that
each contestant has a process of its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

SIZES = {"layers": 6, "vocabulary": 6000}
OURS = {
    "regard": {"optimizer": "adamw", "batch_tokens": 4096},  # the optimizer of the others
    "regard-muon": {},  # as the recipe is: slower a token, and far fewer tokens are needed
}
CONTESTANTS = (*OURS, "trainer", "trainer-bfloat16", "trainer-bfloat16-compiled")
WARM = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--with-compiled", action="store_true")
    parser.add_argument("--one", choices=CONTESTANTS, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.one:
        print(json.dumps(measured(said.one, said.data_dir, said.seconds)))
        return
    found = {}
    for name in CONTESTANTS if said.with_compiled else CONTESTANTS[:-1]:
        command = [sys.executable, __file__, "--one", name, "--data-dir", said.data_dir,
                   "--seconds", str(said.seconds)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(f"{name:28} {found[name]['tokens_per_second']:8,.0f} real tokens/s "
              f"{found[name]['megabytes']:6,.0f} MB {found[name]['parameters']:,} parameters",
              flush=True)  # fmt: skip
    ours = found["regard"]["tokens_per_second"]
    ratios = {name: ours / each["tokens_per_second"] for name, each in found.items()}
    print(json.dumps({"found": found, "regard_is_faster_by": ratios}))


def measured(name: str, data_dir: str, seconds: float) -> dict[str, float]:
    from regard.translation.batches import tokenized
    from regard.translation.corpora import read_corpus
    from regard.translation.recipes import read_recipe
    from regard.translation.tokenizer import Tokenizer

    recipe = read_recipe("multi30k").changed({**SIZES, "data_dir": data_dir, **OURS.get(name, {})})
    corpus = read_corpus(recipe)
    tokenizer = Tokenizer.trained((t for pair in corpus.train for t in pair), recipe.vocabulary)
    clock = Clock(seconds)
    if name in OURS:
        parameters = train_ours(recipe, corpus, tokenizer, clock)
    else:
        rows = tokenized(corpus.train, tokenizer, recipe.longest)
        parameters = train_theirs(recipe, rows, clock, name)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "tokens_per_second": clock.speed(), "megabytes": megabytes, "parameters": parameters
    }  # fmt: skip


class Clock:
    """Counts real tokens from the update WARM on, until the time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.updates, self.tokens, self.start, self.now = seconds, 0, 0, 0.0, 0.0

    def over(self, tokens: int) -> bool:
        self.updates += 1
        self.now = time.perf_counter()
        if self.updates <= WARM:
            self.start = self.now
            return False
        self.tokens += tokens
        return self.now - self.start > self.seconds

    def speed(self) -> float:
        return self.tokens / (self.now - self.start)


class Enough(Exception):
    pass


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
    if name != "trainer":
        better = {"bf16": True, "per_device_train_batch_size": 96,
                  "train_sampling_strategy": "group_by_length"}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True,
            logging_strategy="no", max_steps=100000, remove_unused_columns=False,
            torch_compile=name.endswith("compiled"), length_column_name="length", **better,
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
