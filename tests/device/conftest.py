"""What tests of one device share."""

from __future__ import annotations

import pytest

from tests.conftest import TRUTH
from tests.lowered import compiled_in


@pytest.fixture
def by_form(core, tmp_path):
    """Output of the transformed model in one of `FORMS`; the simulation's without a form."""

    def run(net, inputs, form=None, **properties):
        if form is None:
            return core.compile_model(net, "CPU", {**TRUTH, **properties})(inputs)[0]
        return compiled_in(form, net, core, tmp_path, **properties)(inputs)[0]

    return run
