"""Every operation, and the table by which files name them."""

from __future__ import annotations

from regard.graph.operation import Operation
from regard.graph.operations.elementwise import (
    Add,
    Affine,
    Divide,
    Entrywise,
    Multiply,
    Negate,
    NormalCdf,
    NormalDensity,
    Pairwise,
    Scale,
    Sigmoid,
    SoftCap,
    Sqrt,
    Subtract,
    Tanh,
)
from regard.graph.operations.heads import GroupSum, Merge, PickHead, PutHead, Repeat, Split
from regard.graph.operations.linear import (
    MatMul,
    Mean,
    Outer,
    Place,
    Spread,
    Sum,
    Take,
    Transpose,
)
from regard.graph.operations.masks import Attend, Causal, Mask, OpenProduct, Padding, Prefix, Window
from regard.graph.operations.positions import Alibi, Rotary, Sinusoidal
from regard.graph.operations.softmax import AppendSink, Exp, Normalise

OPERATIONS: dict[str, type[Operation]] = {
    operation.word: operation
    for operation in (
        Add, Affine, Alibi, AppendSink, Attend, Causal, Divide, Exp, GroupSum, Mask, MatMul,
        Mean, Merge, Multiply, Negate, NormalCdf, NormalDensity, Normalise, OpenProduct,
        Outer, Padding, PickHead, Place, Prefix, PutHead, Repeat, Rotary, Scale, Sigmoid,
        Sinusoidal, SoftCap, Split, Spread, Sqrt, Subtract, Sum, Take, Tanh, Transpose, Window,
    )
}  # fmt: skip

__all__ = [
    "OPERATIONS", "Add", "Affine", "Alibi", "AppendSink", "Attend", "Causal", "Divide",
    "Entrywise", "Exp", "GroupSum", "Mask", "MatMul", "Mean", "Merge", "Multiply", "Negate",
    "NormalCdf", "NormalDensity", "Normalise", "OpenProduct", "Outer", "Padding", "Pairwise",
    "PickHead", "Place", "Prefix", "PutHead", "Repeat", "Rotary", "Scale", "Sigmoid",
    "Sinusoidal", "SoftCap", "Split", "Spread", "Sqrt", "Subtract", "Sum", "Take", "Tanh",
    "Transpose", "Window",
]  # fmt: skip
