"""Reports that several files look at; each is made once."""

import functools
from pathlib import Path

import pytest
from translations import write

from geval_py import evaluate, evaluate_all
from geval_py.reports.page import page
from geval_py.reports.report import Report

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


@pytest.fixture(scope="session")
def gazette():
    """The page on the outputs of gazette's dev-0."""
    first, *others = evaluate_all(GAZETTE, "dev-0")
    return page(Report(first, others, options=["-t", "dev-0"]), "Gazette").replace(f"{GAZETTE}/", "")


@pytest.fixture(scope="session")
def sayings(tmp_path_factory):
    return write(tmp_path_factory.mktemp("sayings") / "sayings")


@pytest.fixture(scope="session")
def made(sayings):
    @functools.cache
    def make(metric, *names):
        first, *others = [evaluate(sayings, "dev-0", output=f"out-{name}.tsv", metric=metric) for name in names]
        return Report(first, others)

    return make


@pytest.fixture(scope="session")
def page_of(made):
    return functools.cache(lambda metric, *names: page(made(metric, *names), "Sayings"))
