"""Every ``fit`` that learns from classes says what its parameters are."""

import inspect
import re

import pytest

from estimator_cases import public_classes
from laconic.core.contract import Accepts, LabelledReader

CLASSES = {name: c for name, c in public_classes().items() if issubclass(c, LabelledReader)}


@pytest.mark.parametrize("name", CLASSES)
def test_fit_names_its_parameters(name):
    fit = CLASSES[name].fit
    text = inspect.getdoc(fit)
    documented = re.findall(r"^\**(\w+) : ", text.split("Parameters\n")[1], flags=re.M)
    assert documented == list(inspect.signature(fit).parameters)[1:]


@pytest.mark.parametrize("name", CLASSES)
def test_fit_says_what_its_columns_may_hold(name):
    accepts = CLASSES[name]._accepts
    line = re.search("^X : .*", inspect.getdoc(CLASSES[name].fit), flags=re.M).group()
    if isinstance(accepts, Accepts) and "as the model accepts" not in line:
        assert ("scan" in line, "CSR" in line) == (accepts.scan, accepts.sparse)
