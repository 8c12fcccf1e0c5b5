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

V1, V2, GENERALIZATION = "echelon-eval-v1", "echelon-eval-v2", "echelon-generalization-v1"
MAPS = 100


def frozen(name: str) -> Suite:
    """A shipped suite, frozen again."""
    if name == GENERALIZATION:
        scenarios = ("skirmish-seen", "skirmish-unseen", "trio", "octet")
        return freeze_suite(name, scenarios, ("novice", "veteran", "expert", "champion"), MAPS)
    levels = ("trivial", "novice", "competent", "veteran", "expert")
    first = freeze_suite(V1, ("duel", "skirmish", "battle"), levels, MAPS)
    # the second version has the maps of the first, so that results against its levels are the same
    return first if name == V1 else dataclasses.replace(first, name=V2, opponents=(*levels, "champion"))


@pytest.fixture(scope="module")
def small() -> Suite:
    return freeze_suite("small", ["duel-open", "duel"], ["trivial"], 2)


@pytest.fixture(scope="module")
def match(small):
    seeds = small.scenario("duel-open").seeds
    return play_match(baseline("idle"), baseline("idle"), small.config("duel-open"), seeds, scenario="duel-open")


@pytest.mark.long
@pytest.mark.parametrize("name", SUITES)
def test_a_shipped_suite_equals_a_newly_frozen_one(name):
    """On a change of battles or maps freeze it again (see above), only while no results are published with it."""
    shipped = load_suite(name)
    assert shipped == frozen(name)
    assert len({seed for each in shipped.scenarios for seed in each.seeds}) == len(shipped.scenarios) * MAPS


def test_the_shipped_suites():
    assert SUITES == (V1, V2, GENERALIZATION)
    first, second = load_suite(V1), load_suite(V2)
    assert second == dataclasses.replace(first, name=V2, opponents=(*first.opponents, "champion"))


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

    document = make_config("duel-open").to_dict()
    del document["rewards"]  # they do not affect battles
    del document["abilities"]  # all are on
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert small.scenario("duel-open").config_hash == sha(text)
    assert small.scenario("duel-open").map_hashes == tuple(battle.map_hash for battle in match.battles[::2])
    assert small.hash == sha(json.dumps(asdict(small), sort_keys=True, separators=(",", ":")))
    assert small.hash != dataclasses.replace(small, opponents=("novice",)).hash


def test_a_suite_survives_json(small):
    assert suite.suite_from_dict(json.loads(json.dumps(asdict(small)))) == small


def test_training_seeds_are_refused_in_a_suite(small):
    document = asdict(small)
    document["scenarios"][0]["seeds"] = [1, 2]
    with pytest.raises(ValueError, match="outside the allowed range"):
        suite.suite_from_dict(document)


def test_unknown_names_are_refused(small):
    with pytest.raises(SuiteError, match=r"unknown suite 'echelon-eval'; did you mean 'echelon-eval-v[12]'"):
        load_suite("echelon-eval")
    with pytest.raises(SuiteError, match="unknown opponent 'novic'; did you mean 'novice'"):
        freeze_suite("none", ["duel"], ["trivial", "novic"], 1)
    with pytest.raises(SuiteError, match="suite small: unknown scenario 'dule'; did you mean 'duel'"):
        small.config("dule")
    assert issubclass(SuiteError, ConfigError)


def test_a_scenario_that_has_changed_is_refused(small, monkeypatch):
    monkeypatch.setattr(suite, "make_config", lambda name: make_config(name, max_steps=479))
    with pytest.raises(SuiteError, match="scenario 'duel' differs from the frozen one"):
        small.config("duel")


def test_matches_on_the_suites_maps_are_accepted(small, match):
    small.check_match(match)
    small.check_match(dataclasses.replace(match, battles=match.battles[:2]))


def test_matches_on_other_maps_are_refused(small, match):
    with pytest.raises(SuiteError, match="unknown scenario 'else'"):
        small.check_match(dataclasses.replace(match, scenario="else"))
    duel = small.scenario("duel").config_hash
    with pytest.raises(SuiteError, match="maps are not the first of scenario 'duel'"):
        small.check_match(dataclasses.replace(match, scenario="duel", config_hash=duel))
    with pytest.raises(SuiteError, match="maps are not the first"):
        small.check_match(dataclasses.replace(match, battles=match.battles[2:]))


@pytest.mark.parametrize("played", [1, 2, 4])
def test_a_map_of_other_content_is_refused_in_any_part(small, match, played):
    other = (*match.battles[: played - 1], dataclasses.replace(match.battles[played - 1], map_hash="0" * 64))
    with pytest.raises(SuiteError, match="a map of scenario 'duel-open' differs from the frozen one"):
        small.check_match(dataclasses.replace(match, battles=other))


def test_matches_of_another_configuration_are_refused(small):
    config = make_config(small.config("duel-open"), max_steps=2)
    seeds = small.scenario("duel-open").seeds
    match = play_match(baseline("idle"), baseline("idle"), config, seeds, scenario="duel-open")
    with pytest.raises(SuiteError, match="was not played with the configuration of scenario 'duel-open'"):
        small.check_match(match)


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
        ({"opponents": ["novic"]}, "unknown opponent 'novic'; did you mean 'novice'"),
        ({"opponents": [3]}, "expected str, got 3"),
        ({"scenarios": 3}, "expected a sequence"),
        ({"scenarios": [{"name": "duel"}]}, "keys are missing: config_hash, map_hashes, seeds"),
        (
            {"scenarios": [{"name": "duel", "config_hash": "", "map_hashes": [], "seeds": [2**62]}]},
            "the 1 maps",
        ),
        ({"scenarios": [{"name": "duel", "config_hash": "", "map_hashes": [""], "seeds": [7]}]}, "outside the allowed"),
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
    write_json(tmp_path / "mine.json", asdict(small) | change)
    with pytest.raises(SuiteError, match=f"mine.json: .*{message}"):
        load_suite(tmp_path / "mine.json")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(SuiteError, match=r"mine\.json: No such file"):
        load_suite(tmp_path / "mine.json")
    (tmp_path / "mine.json").write_text("{")
    with pytest.raises(SuiteError, match=r"mine\.json: Expecting"):
        load_suite(tmp_path / "mine.json")


@pytest.mark.parametrize("num_maps", [0, 1.5])
def test_a_suite_needs_maps(num_maps):
    with pytest.raises(ConfigError, match="num_maps"):
        freeze_suite("none", ["duel"], ["trivial"], num_maps)


if __name__ == "__main__":
    folder = Path(echelon_env.__file__).parent / "evaluate" / "suites"
    for name in (V1, V2, GENERALIZATION):
        write_json(folder / f"{name}.json", asdict(frozen(name)))
