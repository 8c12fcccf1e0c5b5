"""Datasets as Minari reads them."""

import dataclasses

import gymnasium
import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.cli import main
from echelon_env.replays import ReplayError, export_minari, transitions, write_replay
from replays.battles import recorded

minari = pytest.importorskip("minari", reason="the extra minari is not installed")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))


def test_each_mech_of_each_battle_is_an_episode():
    actions = recorded().actions[:5].copy()
    actions[0, 0, :3] = np.nan, np.inf, -np.inf  # played as 0
    cut = dataclasses.replace(recorded(), actions=actions, digests=recorded().digests[:6])
    export_minari([recorded(), cut], "echelon/skirmish/random-v0", algorithm_name="random")
    dataset = minari.load_dataset("echelon/skirmish/random-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (20, 10 * 12 + 10 * 5)
    arrays = transitions(recorded())
    for mech, episode in enumerate(dataset.iterate_episodes(range(10))):
        np.testing.assert_array_equal(episode.observations, arrays["observations"][:, mech])
        np.testing.assert_array_equal(episode.actions, arrays["actions"][:, mech])
        np.testing.assert_allclose(episode.rewards, arrays["rewards"][:, mech])
        assert episode.truncations.tolist() == [False] * 11 + [True] and not episode.terminations.any()
    assert next(dataset.iterate_episodes([10])).actions[0, :3].tolist() == [0.0, 0.0, 0.0]
    assert [each.truncations[-1] for each in dataset.iterate_episodes(range(10, 20))] == [True] * 10


@pytest.mark.parametrize("time_limit", ["truncate", "terminate"])
def test_the_dataset_names_the_environment_of_its_battles(time_limit):
    config = make_config("skirmish-open", max_steps=3, time_limit=time_limit, terrain={"size": 64})
    export_minari([recorded(config, 3)], "echelon/mine-v0")
    dataset = minari.load_dataset("echelon/mine-v0")
    assert minari.load_dataset("echelon/mine-v0").env_spec == dataset.env_spec
    recovered = dataset.recover_environment(opponent="trivial", pilot=2, side=1)
    assert (recovered.unwrapped.config, recovered.unwrapped.mechs) == (config, ("red_2",))
    assert recovered.observation_space == dataset.observation_space
    assert recovered.action_space == dataset.action_space
    d3rlpy = gymnasium.wrappers.TimeLimit(recovered.unwrapped, max_episode_steps=recovered.spec.max_episode_steps)
    for env in (recovered, d3rlpy):  # as d3rlpy's `get_minari` makes it
        env.reset(seed=1)
        flags = [env.step(env.action_space.sample())[2:4] for _ in range(3)]
        assert flags == [(False, False)] * 2 + [(time_limit == "terminate", time_limit == "truncate")]


def test_battles_of_several_configurations_have_no_environment(tmp_path, capsys):
    scenarios = ("duel-open", "skirmish-open")
    with pytest.raises(ReplayError, match="expected battles of one configuration, its environment, got 2"):
        export_minari([recorded(scenario) for scenario in scenarios], "echelon/two-v0")
    for scenario in scenarios:
        write_replay(tmp_path / f"{scenario}.replay", recorded(scenario))
    assert main(["replay", *map(str, tmp_path.glob("*.replay")), "--minari", "echelon/two-v0"]) == 2
    assert "--minari: replays: expected battles of one configuration" in capsys.readouterr().err
    with pytest.raises(ReplayError, match="at least one with a decision"):
        export_minari([], "echelon/none-v0")
    assert minari.list_local_datasets() == {}


def test_the_command(tmp_path, capsys):
    write_replay(tmp_path / "one.replay", recorded("duel-open"))
    arguments = ["replay", str(tmp_path / "one.replay"), "--minari", "echelon/duel/one-v0"]
    assert main(arguments) == 0
    dataset = minari.load_dataset("echelon/duel/one-v0")
    assert dataset.total_episodes == 2
    assert dataset.recover_environment().unwrapped.config == recorded("duel-open").config
    assert main(arguments) == 2
    assert "--minari: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mine", "my data-v0", "/abs-v0", "a/../../b-v0"])
def test_a_name_that_minari_cannot_read_again_is_refused(name, tmp_path, capsys):
    with pytest.raises(ValueError, match="expected NAME-vN, such as echelon/skirmish/mine-v0"):
        export_minari([recorded("duel-open")], name)
    assert main(["replay", str(tmp_path / "none.replay"), "--minari", name]) == 2
    assert capsys.readouterr().err.startswith("echelon: --minari: expected NAME-vN")
    assert minari.list_local_datasets() == {}
