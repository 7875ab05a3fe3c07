"""What tests of one device share."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import TRUTH
from tests.lowered import compiled_in, content_of


@pytest.fixture(scope="session")
def simulated() -> dict[tuple, np.ndarray]:
    """Outputs of simulations: the cases of a test differ in the form alone, and are compared with the same."""
    return {}


@pytest.fixture
def by_form(core, tmp_path, simulated):
    """Output of the transformed model in one of `FORMS`; the simulation's without a form."""

    def run(net, inputs, form=None, **properties):
        if form is not None:
            return compiled_in(form, net, core, tmp_path, **properties)(inputs)[0]
        arrays = ((value.shape, value.dtype.str, value.tobytes()) for value in inputs)
        key = (content_of(net, tmp_path), *arrays, *sorted(properties.items()))
        if key not in simulated:
            simulated[key] = np.array(core.compile_model(net, "CPU", {**TRUTH, **properties})(inputs)[0])
        return simulated[key].copy()

    return run
