"""The model: a forest grown on scikit-learn's breast-cancer data, the same one every time.

It is grown where it is needed and never kept as a pickle: who could put another file in its place
would have it executed.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

TREES = 50


def rows() -> np.ndarray:
    """Return the data's features, 569 rows of 30, as the runtimes compute with them."""
    return load_breast_cancer().data.astype(np.float32)


def grown() -> RandomForestClassifier:
    """Return the forest; it takes some tenths of a second."""
    model = RandomForestClassifier(n_estimators=TREES, random_state=0, n_jobs=1)
    return model.fit(rows(), load_breast_cancer().target)
