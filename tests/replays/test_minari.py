"""Datasets as Minari reads them."""

import dataclasses

import numpy as np
import pytest

from echelon_env.cli import main
from echelon_env.replays import ReplayError, export_minari, transitions, write_replay
from replays.battles import recorded

minari = pytest.importorskip("minari", reason="the extra minari is not installed")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))


def test_each_mech_of_each_battle_is_an_episode():
    cut = dataclasses.replace(recorded(), actions=recorded().actions[:5], digests=recorded().digests[:6])
    export_minari([recorded(), cut], "echelon/skirmish/random-v0", algorithm_name="random")
    dataset = minari.load_dataset("echelon/skirmish/random-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (20, 10 * 12 + 10 * 5)
    arrays = transitions(recorded())
    for mech, episode in enumerate(dataset.iterate_episodes(range(10))):
        np.testing.assert_array_equal(episode.observations, arrays["observations"][:, mech])
        np.testing.assert_array_equal(episode.actions, arrays["actions"][:, mech])
        np.testing.assert_allclose(episode.rewards, arrays["rewards"][:, mech])
        assert episode.truncations.tolist() == [False] * 11 + [True] and not episode.terminations.any()
    assert [each.truncations[-1] for each in dataset.iterate_episodes(range(10, 20))] == [True] * 10


def test_entries_that_are_not_finite_are_those_that_were_played():
    actions = recorded("duel-open").actions.copy()
    actions[0, 0, :3] = np.nan, np.inf, -np.inf
    export_minari([dataclasses.replace(recorded("duel-open"), actions=actions)], "echelon/duel/infinite-v0")
    episode = next(iter(minari.load_dataset("echelon/duel/infinite-v0").iterate_episodes([0])))
    assert episode.actions[0, :3].tolist() == [0.0, 0.0, 0.0]


def test_the_command(tmp_path, capsys):
    write_replay(tmp_path / "one.replay", recorded("duel-open"))
    arguments = ["replay", str(tmp_path / "one.replay"), "--minari", "echelon/duel/one-v0"]
    assert main(arguments) == 0
    assert minari.load_dataset("echelon/duel/one-v0").total_episodes == 2
    assert main(arguments) == 2
    assert "--minari: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mine", "my data-v0", "/abs-v0", "../up-v0", "a/../../b-v0", "mine-v", "mine-v0/"])
def test_a_name_that_minari_cannot_read_again_is_refused(name, tmp_path, capsys):
    with pytest.raises(ValueError, match="expected NAME-vN, such as echelon/skirmish/mine-v0"):
        export_minari([recorded("duel-open")], name)
    assert main(["replay", str(tmp_path / "none.replay"), "--minari", name]) == 2
    assert capsys.readouterr().err.startswith("echelon: --minari: expected NAME-vN")
    assert minari.list_local_datasets() == {}


def test_nothing_to_export_is_refused():
    with pytest.raises(ReplayError, match="at least one with a decision"):
        export_minari([], "echelon/none-v0")
