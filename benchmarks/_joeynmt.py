"""JoeyNMT's own training loop on files of pieces, until the time is over.

    JOEY_PYTHON benchmarks/_joeynmt.py FOLDER SECONDS

It runs in an environment of its own, because JoeyNMT 2.3 asks for a protobuf that others no longer
take. FOLDER holds train.fr and train.en, whose words are pieces, and vocabulary.txt.
"""

import json
import logging
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from _measure import Clock, Enough


def main() -> None:
    import torch
    from joeynmt import training
    from joeynmt.prediction import prepare

    folder, clock = Path(sys.argv[1]), Clock(float(sys.argv[2]))
    logging.disable()
    torch.set_num_threads(2)
    counted = training.TrainManager._train_step

    def counting(manager: Any, batch: Any) -> Any:
        found = counted(manager, batch)
        pad = manager.model.pad_index
        real = sum(int((side != pad).sum()) for side in (batch.src, batch.trg)) + batch.nseqs
        if clock.over(real):
            raise Enough
        return found

    training.TrainManager._train_step = counting
    models = []

    def prepared(*given: Any, **named: Any) -> Any:
        found = prepare(*given, **named)
        models.append(found[0])
        return found

    training.prepare = prepared
    with suppress(Enough):
        training.train(0, 1, settings(folder), skip_test=True)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    parameters = sum(p.numel() for p in models[0].parameters())
    print(json.dumps({
        "tokens_per_second": clock.speed(), "megabytes": megabytes, "parameters": parameters
    }))  # fmt: skip


def settings(folder: Path) -> dict[str, Any]:
    """A Transformer with as many weights as ours has; batches of as many tokens."""
    side = {"level": "word", "tokenizer_type": "none", "voc_file": str(folder / "vocabulary.txt")}
    half = {
        "type": "transformer", "num_layers": 3, "num_heads": 4, "hidden_size": 256, "ff_size": 800,
        "dropout": 0.2, "embeddings": {"embedding_dim": 256, "scale": True},
    }  # fmt: skip
    (folder / "model").mkdir(exist_ok=True)
    return {
        "name": "peer", "model_dir": str(folder / "model"), "use_cuda": False, "random_seed": 1,
        "data": {
            "train": str(folder / "train"), "dev": str(folder / "train"), "dataset_type": "plain",
            "src": {"lang": "fr", **side}, "trg": {"lang": "en", **side},
        },
        "training": {
            "optimizer": "adamw", "learning_rate": 1e-3, "batch_type": "token", "batch_size": 4096,
            "epochs": 1000, "scheduling": "warmupinversesquareroot", "learning_rate_warmup": 400,
            "label_smoothing": 0.1, "validation_freq": 10**6,
            "logging_freq": 10**6, "clip_grad_norm": 1.0,
        },
        "testing": {},
        "model": {
            "initializer": "xavier_uniform", "embed_initializer": "xavier_uniform",
            "tied_embeddings": True, "tied_softmax": True, "encoder": half, "decoder": half,
        },
    }  # fmt: skip


if __name__ == "__main__":
    main()
