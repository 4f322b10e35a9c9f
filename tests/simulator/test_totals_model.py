"""The model of totals: every interleaving ends right, and each weakening is seen."""

import pytest

from tests.simulator.totals_model import AS_IT_IS, Weakened, wrong_ends


def test_every_end_of_the_model_is_right() -> None:
    assert wrong_ends(AS_IT_IS, crashes=1)[2] == 0


@pytest.mark.rest
@pytest.mark.parametrize("name", Weakened._fields)
def test_the_model_ends_wrong_without_a_protection(name: str) -> None:
    assert wrong_ends(Weakened(**{name: True}), crashes=1)[2] > 0
