"""Single-head self-attention."""

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, bias=False):
        super().__init__()
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, d_model, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x):
        """The output (batch, tokens, d_model), the scores and the weights (batch, tokens, tokens)."""
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = torch.matmul(q, k.transpose(-2, -1))
        weights = F.softmax(scores, dim=-1)
        return torch.matmul(weights, v), scores, weights


if __name__ == "__main__":
    torch.manual_seed(42)
    attention = SelfAttention(d_model=4)
    x = torch.randn(2, 3, 4)
    output, scores, weights = attention(x)
    for name, tensor in (("scores", scores), ("weights", weights)):
        print(name, tensor.shape, tensor, sep="\n")
