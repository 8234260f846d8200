import numpy as np


def self_attention(X, Wq, Wk, Wv):
    scores = (X @ Wq) @ (X @ Wk).T / np.sqrt(Wk.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ (X @ Wv), weights


def multi_head_attention(X, Wq, Wk, Wv, H):
    parts = [np.split(W, H, axis=1) for W in (Wq, Wk, Wv)]
    heads = [self_attention(X, *part) for part in zip(*parts, strict=True)]
    return np.concatenate([head[0] for head in heads], axis=1), [head[1] for head in heads]
