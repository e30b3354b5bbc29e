"""q of groups of lines: groups that do not differ are rarely said to differ, by line and by document."""

import numpy as np
import pytest

from geval_py.explaining.losses import Grouping, group_q_values

TRIALS = 2000
SETTINGS = {  # lines, groups, documents, whether a document's lines are all of one group
    "few lines": (60, 4, None, False),
    "lines": (1000, 10, None, False),
    "documents": (800, 6, 36, False),
    "documents of one group": (800, 6, 36, True),
}


def values_and_groups(rng, lines, groups, documents, one_group):
    """Skewed values, alike in a document, and groups of which the first is small."""
    shares = np.array([0.05, *[0.95 / (groups - 1)] * (groups - 1)])
    if documents is None:
        return rng.lognormal(0, 1.5, lines), rng.choice(groups, lines, p=shares), None
    sizes = rng.lognormal(0, 0.7, documents)
    of_line = rng.choice(documents, lines, p=sizes / sizes.sum())
    values = rng.gamma(1, 2, lines) + np.exp(rng.normal(0, 0.7, documents))[of_line]
    codes = rng.choice(groups, documents, p=shares)[of_line] if one_group else rng.choice(groups, lines, p=shares)
    return values, codes, of_line


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_groups_that_do_not_differ(setting):
    rng, groups = np.random.default_rng(1), setting[1]
    false = 0
    for _ in range(TRIALS):
        values, codes, documents = values_and_groups(rng, *setting)
        q_values = group_q_values(values, Grouping("value", codes, tuple(map(str, range(groups)))), documents)
        false += np.nanmin(q_values) < 0.05
    assert false / TRIALS < 0.05 + 3 * (0.05 * 0.95 / TRIALS) ** 0.5


def test_groups_without_values():
    grouping = Grouping("value", np.array([0, 0, 1]), ("a", "b", "c"))
    assert np.isnan(group_q_values(np.full(3, np.nan), grouping)).all()
    assert np.isnan(group_q_values(np.ones(3), grouping)).all()
    infinite = group_q_values(np.array([1.0, 2.0, np.inf]), grouping)
    assert np.isnan(infinite).tolist() == [False, False, True]
