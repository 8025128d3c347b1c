"""Scalings find again what was put into made choices, and the choice among them is by what is left out."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from action_selector.choose.probability_scaling import ProbabilityScaling, ScalingMethod
from calibration.scalers import (
    LabelledChoice,
    choose_method,
    fit_scaling,
    least_within,
    predict_left_out,
    rising_steps,
)


def choices(count: int, sharpness: dict[int, float], seed: int = 0) -> list[LabelledChoice]:
    """Choices whose stated odds are the true ones to a power by the number of options."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        options = draw.choice(list(sharpness))
        weights = [draw.random() + 0.05 for _ in range(options)]
        stated = [weight ** sharpness[options] for weight in weights]
        made.append(
            LabelledChoice(
                probabilities=tuple(one / sum(stated) for one in stated),
                right=draw.choices(range(options), weights)[0],
                group=str(number // 2),
            )
        )
    return made


def test_a_temperature_is_found_again() -> None:
    fitted = fit_scaling(ScalingMethod.TEMPERATURE, choices(3000, {3: 4}))
    assert fitted.temperature == pytest.approx(4, rel=0.2)


def test_a_vector_has_a_temperature_for_each_number_of_options() -> None:
    fitted = fit_scaling(ScalingMethod.VECTOR, choices(4000, {2: 5, 4: 1}))
    assert fitted.temperature_by_count[2] == pytest.approx(5, rel=0.3)
    assert fitted.temperature_by_count[4] == pytest.approx(1, rel=0.3)


def test_adjacent_violators_are_pooled() -> None:
    steps = rising_steps(np.array([1.0, 3.0, 2.0, 0.0, 5.0]), np.array([1.0, 1.0, 1.0, 2.0, 1.0]))
    assert steps == pytest.approx([1, 1.25, 1.25, 1.25, 5])


def test_the_method_is_chosen_by_what_is_left_out() -> None:
    assert choose_method(choices(1500, {2: 6, 4: 1})) is ScalingMethod.VECTOR
    assert choose_method(choices(1500, {3: 5})) in {ScalingMethod.TEMPERATURE, ScalingMethod.VECTOR}


def test_no_group_has_a_say_in_its_own_scaling() -> None:
    made = choices(40, {3: 1})
    seen: list[set[str]] = []

    def fit(known: object) -> ProbabilityScaling:
        seen.append({one.group for one in known})  # type: ignore[attr-defined]
        return ProbabilityScaling()

    predicted = predict_left_out(made, fit, lambda group: int(group) % 4)
    assert [sorted({int(group) % 4 for group in known}) for known in seen] == [
        [1, 2, 3],
        [0, 2, 3],
        [0, 1, 3],
        [0, 1, 2],
    ]
    assert predicted[0] == pytest.approx(made[0].probabilities)


@given(st.floats(-10, 10), st.floats(-10, 0), st.floats(0.01, 10))
def test_the_valley_or_the_nearer_bound_is_found(valley: float, low: float, width: float) -> None:
    found = least_within(lambda number: abs(number - valley), low, low + width)
    assert abs(found - min(max(valley, low), low + width)) < 1e-8
