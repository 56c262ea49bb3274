"""The forest as C++: its trees as nested conditions, with the very numbers that it computes with.

A feature is a float and a threshold a double, as in scikit-learn, and probabilities are added in
the order of the trees: what comes out is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LEAF = -1
HEAD = """\
// Made from the trained model by forest_source.py. Not to be edited.
namespace {
"""
TAIL = """\
}  // namespace

extern "C" void predict(const float *x, double *probabilities) {
  double sum[CLASSES] = {};
CALLS
  for (int i = 0; i < CLASSES; ++i) probabilities[i] = sum[i] / TREES;
}
"""


def forest_source(model: Any) -> str:
    """Return the C++ of a fitted forest: ``predict`` fills the probabilities of all classes."""
    trees = [each.tree_ for each in model.estimators_]
    functions = [_function(number, tree) for number, tree in enumerate(trees)]
    calls = "\n".join(f"  tree_{number}(x, sum);" for number in range(len(trees)))
    tail = TAIL.replace("CLASSES", str(model.n_classes_)).replace("TREES", f"{len(trees)}.0")
    return "\n".join([HEAD, *functions, tail.replace("CALLS", calls)])


def _function(number: int, tree: Any) -> str:
    body = "\n".join(_lines(tree, 0, "  "))
    return f"void tree_{number}(const float *x, double *sum) {{\n{body}\n}}\n"


def _lines(tree: Any, node: int, indent: str) -> Iterator[str]:
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == LEAF:
        shares = [float(share) for share in tree.value[node, 0]]
        yield from (
            f"{indent}sum[{place}] += {share.hex()};" for place, share in enumerate(shares) if share
        )
        return
    threshold = float(tree.threshold[node]).hex()
    yield f"{indent}if (x[{int(tree.feature[node])}] <= {threshold}) {{"
    yield from _lines(tree, left, indent + "  ")
    yield f"{indent}}} else {{"
    yield from _lines(tree, right, indent + "  ")
    yield f"{indent}}}"
