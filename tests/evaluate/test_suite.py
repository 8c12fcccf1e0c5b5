"""The shipped suites equal newly frozen ones; `python tests/evaluate/test_suite.py` freezes them again."""

import dataclasses
import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import pytest

import echelon_env
from echelon_env import ConfigError, make_config
from echelon_env.evaluate import (
    SUITES,
    Suite,
    SuiteError,
    baseline,
    freeze_suite,
    load_suite,
    play_match,
    suite,
)
from echelon_env.storage.atomic import write_json
from evaluate.made import hash_of

EVAL, GENERALIZATION = "echelon-eval-v3", "echelon-generalization-v2"
MAPS = 100


def frozen(name: str, maps: int = MAPS) -> Suite:
    """A shipped suite, frozen again."""
    if name == GENERALIZATION:
        scenarios = ("skirmish-seen", "skirmish-unseen", "trio", "octet")
        return freeze_suite(name, scenarios, ("novice", "veteran", "expert", "champion"), maps)
    levels = ("trivial", "novice", "competent", "veteran", "expert")
    return freeze_suite(name, ("duel", "skirmish", "battle"), (*levels, "champion"), maps)


@pytest.fixture(scope="module")
def small() -> Suite:
    return freeze_suite("small", ["duel-open", "duel"], ["trivial"], 2)


@pytest.fixture(scope="module")
def match(small):
    seeds = small.scenario("duel-open").seeds
    return play_match(baseline("idle"), baseline("idle"), small.config("duel-open"), seeds, scenario="duel-open")


def shortened(suite: Suite, maps: int) -> Suite:
    """The suite on its first maps."""
    scenarios = [
        dataclasses.replace(each, map_hashes=each.map_hashes[:maps], seeds=each.seeds[:maps])
        for each in suite.scenarios
    ]
    return dataclasses.replace(suite, scenarios=tuple(scenarios))


@pytest.mark.parametrize("name", [EVAL, GENERALIZATION])
@pytest.mark.parametrize("maps", [2, pytest.param(20, marks=pytest.mark.long)])
def test_a_shipped_suite_equals_a_newly_frozen_one(name, maps):
    """On a change of battles or maps freeze it again (see above), only while no results are published with it."""
    shipped = load_suite(name)
    assert shortened(shipped, maps) == frozen(name, maps)
    assert len({seed for each in shipped.scenarios for seed in each.seeds}) == len(shipped.scenarios) * MAPS


def test_the_shipped_suites():
    hashes = {name: load_suite(name).hash[:12] for name in SUITES}
    assert hashes == {EVAL: "371832bfefc2", GENERALIZATION: "ace578d52fa5"}  # published ones


def test_the_biomes_of_the_generalisation_split_are_those_of_the_skirmish():
    biomes = {name: make_config(name).terrain.biomes for name in ("skirmish", "skirmish-seen", "skirmish-unseen")}
    seen, unseen = biomes["skirmish-seen"], biomes["skirmish-unseen"]
    assert sorted([*seen, *unseen]) == sorted(biomes["skirmish"])
    for name in ("skirmish-seen", "skirmish-unseen"):
        config = make_config("skirmish", terrain={"biomes": biomes[name]})
        assert make_config(name) == config, "only the biomes differ"


def test_hashes_are_of_canonical_documents(small, match):
    def sha(text):
        return hashlib.sha256(text.encode()).hexdigest()

    assert small.scenario("duel-open").config_hash == hash_of(make_config("duel-open"))
    assert small.scenario("duel-open").map_hashes == tuple(battle.map_hash for battle in match.battles[::2])
    assert small.hash == sha(json.dumps(asdict(small), sort_keys=True, separators=(",", ":")))
    assert small.hash != dataclasses.replace(small, opponents=("novice",)).hash


def test_unknown_names_are_refused(small):
    with pytest.raises(SuiteError, match=r"unknown suite 'echelon-eval'; did you mean 'echelon-eval-v3'"):
        load_suite("echelon-eval")
    with pytest.raises(SuiteError, match="unknown opponent 'novic'; did you mean 'novice'"):
        freeze_suite("none", ["duel"], ["trivial", "novic"], 1)
    with pytest.raises(ConfigError, match="num_maps"):
        freeze_suite("none", ["duel"], ["trivial"], 0)
    with pytest.raises(SuiteError, match="suite small: unknown scenario 'dule'; did you mean 'duel'"):
        small.config("dule")
    assert issubclass(SuiteError, ConfigError)


def test_a_scenario_that_has_changed_is_refused(small, monkeypatch):
    monkeypatch.setattr(suite, "make_config", lambda name: make_config(name, max_steps=479))
    with pytest.raises(SuiteError, match="scenario 'duel' differs from the frozen one"):
        small.config("duel")


def test_matches_on_other_maps_or_by_other_rules_are_refused(small, match):
    small.check_match(match)
    small.check_match(dataclasses.replace(match, battles=match.battles[:2]))
    duel = small.scenario("duel").config_hash
    others = {
        "unknown scenario 'else'": {"scenario": "else"},
        "maps are not the first of scenario 'duel'": {"scenario": "duel", "config_hash": duel},
        "maps are not the first": {"battles": match.battles[2:]},
        "was not played with the configuration of scenario 'duel-open'": {"config_hash": duel},
    }
    for message, changes in others.items():
        with pytest.raises(SuiteError, match=message):
            small.check_match(dataclasses.replace(match, **changes))
    for place in (0, 1, 3):
        battles = list(match.battles)
        battles[place] = dataclasses.replace(battles[place], map_hash="0" * 64)
        with pytest.raises(SuiteError, match="a map of scenario 'duel-open' differs from the frozen one"):
            small.check_match(dataclasses.replace(match, battles=tuple(battles)))


def test_a_custom_suite_is_loaded_from_its_file(small, tmp_path):
    file = tmp_path / "mine.json"
    write_json(file, asdict(small))
    assert load_suite(file) == load_suite(str(file)) == small
    assert load_suite(file).hash == small.hash
    write_json(file, asdict(dataclasses.replace(small, opponents=("novice",))))
    assert load_suite(file).opponents == ("novice",)


FROZEN = {"name": "duel", "config_hash": "", "map_hashes": [""], "seeds": [2**62]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "No such file"),
        ("{", "Expecting"),
        ({"opponents": ["novic"]}, "unknown opponent 'novic'; did you mean 'novice'"),
        ({"opponents": [3]}, "expected str, got 3"),
        ({"scenarios": 3}, "expected a sequence"),
        ({"scenarios": [{"name": "duel"}]}, "keys are missing: config_hash, map_hashes, seeds"),
        ({"scenarios": [FROZEN | {"map_hashes": []}]}, "the 1 maps"),
        ({"scenarios": [FROZEN | {"seeds": [7]}]}, "outside the allowed"),
        ({"extra": 1}, "unknown config key 'extra'"),
        ({"opponents": []}, "opponents: expected at least one"),
        ({"opponents": ["novice", "trivial", "novice"]}, "opponents: expected different ones, got 'novice' twice"),
        ({"scenarios": [FROZEN, FROZEN]}, "scenarios: expected different ones, got 'duel' twice"),
        (
            {"scenarios": [FROZEN | {"map_hashes": ["", ""], "seeds": [2**62, 2**62]}]},
            "scenario 'duel': seeds: expected different ones, got 4611686018427387904 twice",
        ),
    ],
)
def test_an_invalid_suite_file_is_refused(small, tmp_path, change, message):
    if change == "{":
        (tmp_path / "mine.json").write_text(change)
    elif change is not None:
        write_json(tmp_path / "mine.json", asdict(small) | change)
    with pytest.raises(SuiteError, match=f"mine.json: .*{message}"):
        load_suite(tmp_path / "mine.json")


if __name__ == "__main__":
    folder = Path(echelon_env.__file__).parent / "evaluate" / "suites"
    for name in (EVAL, GENERALIZATION):
        write_json(folder / f"{name}.json", asdict(frozen(name)))
