import dataclasses
import itertools
import json
import threading

import numpy as np
import pytest

from echelon_env import ConfigError, ControlledBattles, make_config, opponents
from echelon_env.evaluate import Player, baseline, evaluation_seed, play, play_match, training_seed
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import FunctionPolicy
from echelon_env.terrain import generate
from evaluate.made import hash_of

CONFIG = make_config("duel", max_steps=60, zone={"score_to_win": 2.0}, terrain={"size": 32})
UNEVEN = make_config(CONFIG, blue=("medium", "scout", "medium"), red=("light",), max_steps=40, terrain={"size": 40})
SEEDS = [evaluation_seed(3, index) for index in range(5)]


def run_match(first="novice", second="trivial", config=CONFIG, seeds=SEEDS, **kwargs):
    return play_match(baseline(first), baseline(second), config, seeds, scenario="small", **kwargs)


def still(observations):
    return np.zeros((len(observations), ACTION_DIM), np.float32)


def test_a_match_records_what_was_played():
    counts = []
    match = run_match(batch_size=2, on_battles=counts.append)
    assert [battle.number for battle in match.battles] == list(range(10))
    assert [battle.side for battle in match.battles] == [0, 1] * 5
    assert [battle.seed for battle in match.battles] == [seed for seed in SEEDS for _ in range(2)]
    maps = [generate(CONFIG, seed).content_hash for seed in SEEDS]
    assert [battle.map_hash for battle in match.battles] == [each for each in maps for _ in range(2)]
    assert (match.scenario, match.first, match.second) == ("small", "novice", "trivial")
    assert match.action_modes == ("scripted", "scripted")
    assert {battle.outcome for battle in match.battles} >= {-1, 1}
    assert match.wins + match.draws + match.losses == 10
    assert counts == sorted(set(counts)) and counts[-1] == 10 and len(counts) > 5
    document = json.loads(json.dumps(dataclasses.asdict(match), allow_nan=False))
    assert document["classes"][0]["medium"]["mechs"] == 10.0
    assert match.config_hash == hash_of(CONFIG)
    itself = run_match("novice", "novice")
    assert itself.first == itself.second and itself.wins == itself.losses


@pytest.mark.parametrize("config", [CONFIG, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("side", [0, 1])
def test_battles_are_those_of_a_learner_against_an_opponent(config, side):
    """The same battles with the first player as learner and the second as opponent in `ControlledBattles`."""
    arena = ControlledBattles(config, len(SEEDS), opponent="trivial", side=side)
    player = opponents.make("novice", 0, config)
    observations = arena.reset(SEEDS)
    player.reset(np.ones(len(SEEDS) * arena.num_controlled, np.bool_))
    while not arena.battle_over.all():
        actions = player.act(observations.reshape(-1, observations.shape[-1]))
        observations = arena.step(actions.reshape(len(SEEDS), arena.num_controlled, -1))[0]
    match = run_match(config=config)
    battles = [battle for battle in match.battles if battle.side == side]
    state = arena.engine.state
    assert [battle.outcome for battle in battles] == arena.learner_outcome.tolist()
    assert [battle.scores[0] for battle in battles] == state.teams["score"][:, side].tolist()
    assert [battle.scores[1] for battle in battles] == state.teams["score"][:, 1 - side].tolist()
    assert [battle.survivors[0] for battle in battles] == state.teams["mechs_alive"][:, side].tolist()
    assert [battle.seconds for battle in battles] == (state.battles["tick"] * config.dt).tolist()
    assert all(battle.seconds <= 60 * 0.25 for battle in battles)


@pytest.mark.parametrize(
    ("first", "second", "config"),
    [
        ("novice", "trivial", CONFIG),
        ("random", "random", CONFIG),
        ("novice", "random", UNEVEN),
    ],
)
def test_a_result_does_not_depend_on_other_battles(first, second, config):
    whole = run_match(first, second, config)
    for batch_size, num_threads in ((1, 1), (2, 2), (3, 1)):
        assert run_match(first, second, config, batch_size=batch_size, num_threads=num_threads) == whole
    backwards = run_match(first, second, config, SEEDS[::-1])
    alone = [run_match(first, second, config, [seed]) for seed in SEEDS[3:]]
    for battle in itertools.chain(backwards.battles, *(match.battles for match in alone)):
        there = next(b for b in whole.battles if (b.seed, b.side) == (battle.seed, battle.side))
        assert battle == dataclasses.replace(there, number=battle.number)
    assert len(set(map(str, whole.battles))) == 10


def test_swapping_the_players_swaps_the_sides():
    there, back = run_match("novice", "trivial"), run_match("trivial", "novice")
    for mine, yours in zip(there.battles[0::2], back.battles[1::2], strict=True):
        swapped = dataclasses.replace(
            yours, number=mine.number, side=0, outcome=-yours.outcome, scores=yours.scores[::-1],
            survivors=yours.survivors[::-1],
        )  # fmt: skip
        assert swapped == mine
    assert there.classes == back.classes[::-1]


def test_random_players_draw_their_own_numbers():
    """The numbers of both teams, and of both sides of a map, are different."""
    drawn = []

    def make(config, noise):
        def act(observations):
            drawn.append(noise.uniform())
            return drawn[-1]

        return FunctionPolicy(act)

    player = Player("recorded", "uniform", make)
    config = make_config(CONFIG, max_steps=2)
    play_match(player, player, config, SEEDS, scenario="small")
    assert len(drawn) == 2 * 2 * 2
    assert len(np.unique(np.concatenate(drawn), axis=0)) == 8 * len(SEEDS)


def test_threads_stop_with_the_battles():
    """After Ctrl-C in a player's policy, and when `play` is closed early."""
    before = set(threading.enumerate())
    calls = []

    def interrupt(observations):
        calls.append(observations)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return still(observations)

    player = Player("me", "scripted", lambda config, noise: FunctionPolicy(interrupt))
    with pytest.raises(KeyboardInterrupt):
        play_match(player, baseline("idle"), CONFIG, SEEDS, scenario="small", num_threads=2)
    assert set(threading.enumerate()) == before
    moments = play(baseline("champion"), baseline("novice"), CONFIG, SEEDS, num_threads=2)
    next(moments)
    next(moments)
    assert set(threading.enumerate()) > before
    moments.close()
    assert set(threading.enumerate()) == before


SHARED = FunctionPolicy(still)
PRETENDER = Player("novice", "scripted", lambda config, noise: SHARED)


def player(make):
    return Player("me", "scripted", lambda config, noise: make)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"seeds": []}, ValueError, "at least one"),
        ({"seeds": [SEEDS[0], SEEDS[0]]}, ValueError, "duplicates"),
        ({"seeds": [training_seed(0, 0, 0)]}, ValueError, "outside the allowed range"),
        ({"seeds": [0.5]}, ValueError, "expected an integer"),
        ({"second": "idle"}, TypeError, r"expected a Player, such as baseline\('idle'\) or .*, got 'idle'"),
        ({"second": PRETENDER}, ConfigError, "two different players are called 'novice'"),
        ({"num_threads": 0}, ConfigError, "num_threads"),
        ({"batch_size": 0}, ConfigError, "batch_size"),
        ({"config": "duel"}, TypeError, "got 'duel'"),
        ({"side": 2}, ConfigError, "side: expected 0"),
    ],
)
def test_impossible_matches_are_refused(given, error, message):
    arguments = {"first": baseline("novice"), "second": baseline("idle"), "config": CONFIG, "seeds": SEEDS} | given
    if "side" not in given:
        with pytest.raises(error, match=message):
            play_match(**arguments, scenario="small")
    if not {"batch_size", "config"} & given.keys():
        with pytest.raises(error, match=message):
            next(play(**arguments))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (SHARED, "'me' and 'me' make the same policy object"),
        (still, "'me': expected a policy with reset and act, got .*; FunctionPolicy of echelon_env"),
        (FunctionPolicy, "'me': expected a policy with reset and act"),
        (None, "'me': expected a policy with reset and act, got None"),
    ],
)
def test_invalid_policies_are_refused(policy, message):
    me = player(policy)
    with pytest.raises(ValueError, match=message):
        play_match(me, me, CONFIG, SEEDS, scenario="small")
    narrow = Player("me", "scripted", lambda config, noise: FunctionPolicy(lambda rows: rows[:, :3]))
    with pytest.raises(ValueError, match="actions of the player 'me'"):
        play_match(narrow, narrow, CONFIG, SEEDS, scenario="small")
