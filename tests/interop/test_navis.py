"""Skeletons as navis has them: the same nodes, lengths and trees. Needs navis (``pip install navis``).

That is no part of ``make test``; without it these tests are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors

navis: Any = pytest.importorskip("navis")

COUNT = 300
IDS = (5, 720575940621039145)
RNG = np.random.default_rng(1)
POSITIONS = RNG.normal(0, 3, (COUNT, 3)).cumsum(axis=0).astype("f4")
PARENTS = np.array([-1, *(int(RNG.integers(max(0, i - 5), i)) for i in range(1, COUNT))])
LENGTH = np.linalg.norm(POSITIONS[1:] - POSITIONS[PARENTS[1:]], axis=1).sum()

pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_neuron() -> None:
    skeleton = vectors.Skeleton(POSITIONS, PARENTS, {"radius": np.arange(COUNT, dtype="f4")})
    neuron = skeleton.to_navis(units="8 nm", name="one")
    assert (neuron.n_nodes, neuron.n_trees, neuron.name) == (COUNT, 1, "one")
    assert neuron.cable_length == pytest.approx(LENGTH, rel=1e-4)
    assert neuron.nodes[["x", "y", "z"]].to_numpy().tolist() == POSITIONS.tolist()
    assert neuron.nodes["radius"].tolist() == list(range(COUNT))


def test_neurons_of_a_store(tmp_path: Path) -> None:
    both = np.concatenate([POSITIONS, POSITIONS + 100])
    parents = np.concatenate([PARENTS, np.where(PARENTS < 0, -1, PARENTS + COUNT)])
    skeletons = vectors.Skeleton(both, parents, {}, np.repeat(IDS, COUNT))
    vectors.write(str(tmp_path / "a.zv"), skeletons, layout=vectors.Layout(chunk_shape=20, shard_shape=2))
    neurons = vectors.open(str(tmp_path / "a.zv")).read().to_navis()
    assert [neuron.id for neuron in neurons] == list(IDS)
    for neuron in neurons:
        assert (neuron.n_nodes, neuron.n_trees) == (COUNT, 1)
        assert neuron.cable_length == pytest.approx(LENGTH, rel=1e-4)
        leaves = COUNT - len({*PARENTS[1:].tolist()})
        assert neuron.n_leafs == leaves
