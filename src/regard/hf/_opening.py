"""The public face of opening a head; torch is loaded when one is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard._errors import MissingExtraError

if TYPE_CHECKING:
    from regard.show.trace import Trace


def open_head(
    model: Any,
    text: Any,
    layer: int = 1,
    head: int = 1,
    *,
    tokenizer: Any = None,
    target: Any = None,
    part: str = "decoder",
) -> Trace:
    """The worked steps of one head of a trained model over a text.

    The model runs once; every step is computed anew in float64 from what the layer read and from
    its weights. A head whose own context is farther from them than rounding explains is refused
    with a NumberError; the title of the trace tells both numbers.

    model: a Transformer of regard or its checkpoint's folder, anything that has both `model` and
        `tokenizer`, or a causal or encoder-decoder model of transformers with standard attention.
    text: a string, which needs a tokenizer, or the numbers of its tokens. A model of regard reads
        it as a source.
    layer, head: counted from 1.
    target: what follows the source; an encoder-decoder model begins with its start token.
    part: "encoder", "decoder" or "cross" attention of an encoder-decoder model.
    """
    try:
        from regard.hf._heads import opened
    except ModuleNotFoundError as error:
        raise MissingExtraError("opening a head", "translate", str(error.name)) from error
    return opened(model, text, layer, head, tokenizer, target, part)
