"""Translation: corpora, tokenizer, batches, training, decoding, scoring.

Every module is loaded by who needs it; this one loads none.
"""
