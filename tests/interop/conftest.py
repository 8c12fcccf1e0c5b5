"""Rules of the sessions in noxfile.py: each runs one file here, by its name, and nothing may be skipped."""

from dataclasses import replace

import pytest

from echelon_env import make_config

collect_ignore_glob = ["test_*.py"]  # the default test run has none of these libraries; a file that is named is run


def _as_failure(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, which counts as missing: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return _as_failure((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return _as_failure((yield))


@pytest.fixture(scope="session")
def deadly():
    """A battle of 5 v 5 between frail mechs among lava, in which random players soon die."""
    config = make_config("skirmish-open", terrain={"size": 64, "biomes": ["volcano"]})
    classes = tuple(replace(mech_class, armour=1.0) for mech_class in config.catalog.mech_classes)
    return replace(config, catalog=replace(config.catalog, mech_classes=classes))
