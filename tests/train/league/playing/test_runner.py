import dataclasses

import pytest

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import EVALUATION_SEEDS, evaluation_seed
from echelon_env.evaluate.stamps import battle_hash
from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.executors import Executor
from echelon_train.league.playing.runner import pairing, play_jobs, rating_run
from echelon_train.league.store.fsck import fsck
from train.league.leagues import uuids
from train.league.matches import SCENARIO, SHORT, job
from train.small import small_battle

HERE = Executor(1)
TARGET = 200.0


def pair(league, first, second, maps=3, seed=0):
    return pairing(league, first, second, SHORT, SCENARIO, maps, seed)


def test_a_pair_never_plays_twice_on_a_map(league):
    seeds = [evaluation_seed(5, index) for index in range(7)]
    first = pair(league, "otter", "novice", 3, 5)
    assert (first.first, first.second, first.config, first.scenario) == ("otter", "novice", SHORT, SCENARIO)
    assert first.seeds == tuple(seeds[:3]) and pair(league, "otter", "novice", 3, 5) == first
    play_jobs(league, [dataclasses.replace(first, seeds=first.seeds[::2])], HERE)
    assert pair(league, "otter", "novice", 3, 5).seeds == (seeds[1], seeds[3], seeds[4])
    assert pair(league, "novice", "otter", 3, 5).seeds == (seeds[1], seeds[3], seeds[4]), "in either order"
    assert pair(league, "novice", "heron", 3, 5).seeds == tuple(seeds[:3]), "every pair gets the same ones"
    drawn = [seed for _ in range(4) for seed in pair(league, "otter", "novice", 5, None).seeds]
    assert len(set(drawn)) == 20 and all(seed in EVALUATION_SEEDS for seed in drawn), "by default, new ones"


def test_matches_are_recorded_as_they_are_over(league):
    """One that is delivered twice counts once."""

    class Twice(Executor):
        def run(self, path, orders):
            for played in super().run(path, orders):
                yield from (played, dataclasses.replace(played, worker="another", stamp={}, played_at="later"))

    reported = []

    def note(played):
        reported.append(played.uuid)
        assert uuids(league) == reported

    orders = [job("novice", "otter"), job("otter", "heron")]
    assert play_jobs(league, orders, Twice(1), note) == 2
    assert reported == [order.uuid for order in orders]
    assert [standing.games for standing in league.standings() if standing.member.name == "otter"] == [2]
    assert play_jobs(league, [*orders, job("heron", "novice")], HERE) == 1


def test_what_is_recorded_before_a_refusal_stays(league):
    file = league.member_policy("heron") / WEIGHTS_FILE
    file.write_bytes(b"altered" + file.read_bytes()[7:])
    orders = [job("novice", "otter"), job("otter", "trivial"), job("novice", "heron"), job("trivial", "novice")]
    with pytest.raises(LeagueError, match=r"'heron' cannot be used: .*altered"):
        play_jobs(league, orders, HERE)
    assert uuids(league) == [order.uuid for order in orders[:2]]


def run(league, target=TARGET, maps=4, most=60, **more):
    return rating_run(
        league,
        more.pop("battles", {SCENARIO: SHORT}),
        target_deviation=target,
        maps_per_match=maps,
        max_matches=most,
        executor=HERE,
        **more,
    )


def check_maps(league):
    """Every pair has played on its maps once, on the same ones in the same order, all of them rated."""
    drawn: dict[frozenset[str], list[int]] = {}
    for match in (played.match for played in league.matches()):
        maps = [battle.seed for battle in match.battles[::2]]
        drawn.setdefault(frozenset((match.first, match.second)), []).extend(maps)
    longest = max(drawn.values(), key=len)
    for seeds in drawn.values():
        assert seeds == longest[: len(seeds)] and len(set(seeds)) == len(seeds)
    assert fsck(league.path) == [] and league.rebuild() == 0


def test_a_rating_run_ends_when_every_rating_is_known(league):
    reported = []
    found = run(league, on_match=reported.append)
    assert found.reached and found.matches == len(reported) == len(uuids(league))
    assert (
        found.deviations.keys() == {"novice", "trivial", "otter", "heron"} and max(found.deviations.values()) <= TARGET
    )
    assert found.deviations["novice"] == 0 < min(found.deviations[name] for name in ("trivial", "otter", "heron"))
    assert {played.match.scenario for played in reported} == {SCENARIO}
    assert all(len(played.match.battles) == 8 for played in reported)
    periods = len(league.history())
    assert found.matches / 2 <= periods < found.matches, (
        "one for every two matches of four members, or fewer if that does"
    )
    check_maps(league)
    seeds = {battle.seed for each in league.matches() for battle in each.match.battles}
    assert not seeds & {evaluation_seed(0, index) for index in range(1000)}, "ratings choose the champion"
    again = run(league)
    assert (again.matches, again.reached, again.deviations) == (0, True, found.deviations)
    assert len(league.history()) == periods, "no empty period is closed"


def test_scenarios_share_the_maps_of_a_pairing(league):
    found = run(league, most=5, battles={SCENARIO: SHORT, "open": small_battle("duel-open")}, maps=3)
    assert found.matches == len(uuids(league)) == 6, "the third pairing begins below five, with two matches each"
    maps = {}
    for played in league.matches():
        own = SHORT if played.match.scenario == SCENARIO else small_battle("duel-open")
        assert played.match.config_hash == battle_hash(own)
        maps.setdefault((played.match.first, played.match.second), {}).setdefault(played.match.scenario, [])
        seeds = [battle.seed for battle in played.match.battles[::2]]
        maps[played.match.first, played.match.second][played.match.scenario] += seeds
    for each in maps.values():
        assert len(each[SCENARIO]) == 2 * len(each["open"]), "two of three maps, and one"
        assert not set(each[SCENARIO]) & set(each["open"])


def test_the_participants_of_a_rating_run(league):
    found = run(league, most=4, members=["otter"])
    assert (found.matches, found.reached, len(uuids(league))) == (4, False, 4) and not league.unrated_matches()
    assert {(played.match.first, played.match.second) for played in league.matches()} == {("novice", "otter")}
    league.retire("otter")
    run(league, most=4)
    assert league.results().games("otter") == 16, "no more than before"


@pytest.mark.parametrize(
    ("order", "changes", "error", "reason"),
    [
        (pair, {"second": "otter"}, LeagueError, "expected two members, got 'otter' against itself"),
        (pair, {"second": "ottre"}, LeagueError, "no member 'ottre'; did you mean 'otter'"),
        (pair, {"maps": 0}, ConfigError, "maps: expected an integer of at least 1"),
        (pair, {"seed": -1}, ValueError, "seed: expected an integer of at least 0"),
        (run, {"target": 45.0}, ConfigError, "target"),
        (run, {"maps": 0}, ConfigError, "maps"),
        (run, {"maps": 1, "battles": {SCENARIO: SHORT, "open": SHORT}}, ConfigError, "maps: expected .* at least 2, g"),
        (run, {"most": 0}, ConfigError, "max_matches"),
        (run, {"members": ["otter", "absent"]}, LeagueError, "no member 'absent'"),
        (run, {"members": []}, ConfigError, "expected at least two members, got 1"),
    ],
)
def test_impossible_pairings_and_runs(league, order, changes, error, reason):
    given = {"first": "otter", "second": "novice", **changes} if order is pair else changes
    with pytest.raises(error, match=reason):
        order(league, **given)
    assert uuids(league) == []


@pytest.mark.parametrize("after", [3, 4], ids=["in a batch", "before a period is closed"])
def test_an_interrupted_rating_run_continues(league, after):
    def interrupt(played):
        if len(uuids(league)) == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(league, on_match=interrupt)
    before = uuids(league)
    assert len(before) == after and league.unrated_matches() == after - 2
    found = run(league)
    assert found.reached and uuids(league)[:after] == before and len(uuids(league)) == after + found.matches
    check_maps(league)
