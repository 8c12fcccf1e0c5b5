"""Statistics agree with a recount of whole battles from their events and positions, in plain Python."""

import functools
import math
from collections import defaultdict

import numpy as np
import pytest

from echelon_env import BattleEngine, make_config, opponents
from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.engine.state import DEATH, DRAW, ECCM, ECM, FALL, HIT, IN_SIGHT, RESTART, RISE, SHUTDOWN, UNSEEN
from echelon_env.envs.infos import agent_names, read_events
from echelon_env.evaluate import Player, baseline, evaluation_seed, play, play_match
from echelon_env.evaluate.battle_observer import BattleObserver
from echelon_env.evaluate.battle_totals import BINS, HEAT_CELLS, HEAT_MAPS, BattleTotals, parts_of, sum_of
from echelon_env.layout.actions import COMM_DIM, Action
from echelon_env.layout.observations import Self
from support.playing import scripted_actions

DUEL = make_config("duel", max_steps=80, zone={"score_to_win": 3.0}, terrain={"size": 36})
TEAMS = make_config("skirmish", max_steps=90, terrain={"size": 52}, dead_agents="persist")
UNEVEN = make_config(TEAMS, blue=("heavy", "scout", "heavy"), red=("medium", "light"), dead_agents="terminate")
SLOW = make_config(UNEVEN, decision_repeat=60, max_steps=14)
"""A mech shuts down, restarts, falls and rises in a decision."""
SEEDS = [evaluation_seed(5, index) for index in range(4)]

LASTING = {"shutdown": ("deaths_shut_down", True), "restart": ("deaths_shut_down", False)}
LASTING |= {"fall": ("deaths_fallen", True), "rise": ("deaths_fallen", False)}
COUNTED = {"paint": "paints", "interception": "interceptions", "fall": "falls", "shutdown": "shutdowns"}
COUNTED |= {"death": "deaths"}
USED = ("jet_seconds", "vent_seconds", "ecm_seconds", "eccm_seconds", "terrain_broken")


class Talker:
    """A scripted player that also sends messages, uses jets and ECCM, and fires blindly, as follows from its
    observations."""

    def __init__(self, level):
        self.policy = opponents.make(level, 3, "battle")

    def reset(self, mask):
        self.policy.reset(mask)

    def act(self, observations):
        actions = self.policy.act(observations).copy()
        actions[:, Action.COMM_0 :] = np.sin(7.0 * observations[:, :COMM_DIM].astype(np.float64))
        actions[:, Action.JET] = np.sin(50.0 * observations[:, Self.HEADING_COS].astype(np.float64)) - 0.9
        actions[np.sin(50.0 * observations[:, Self.POSITION_X]) > 0.5, Action.TERTIARY] = 1.0
        actions[:, Action.ECCM] = np.sin(50.0 * observations[:, Self.HEADING_SIN].astype(np.float64)) - 0.5
        return actions


@functools.cache
def talker(level):
    return Player(f"talking {level}", "scripted", lambda config, noise: Talker(level))


class Recount:
    """The sums of one battle (B = 1), recounted by loops over mechs and events."""

    def __init__(self, engine):
        self.engine, self.names = engine, agent_names(engine.config)
        self.teams = [name.split("_")[0] for name in self.names]
        self.sums = [defaultdict(float) for _ in self.names]
        self.heat = defaultdict(float)  # (team, map, row, column) -> sum
        self.dead_since = {}  # team -> time of its first death
        self.conditions = [dict.fromkeys(("deaths_shut_down", "deaths_fallen"), False) for _ in self.names]

    def decision(self):
        engine, config, mechs = self.engine, self.engine.config, self.engine.state.mechs[0]
        for m, mech in enumerate(mechs):
            self.sums[m]["shutdown_seconds"] += mech["shutdown_ticks"] * config.dt
            for k, component in enumerate(REWARD_COMPONENTS):
                self.sums[m][f"reward/{component}"] += float(engine.reward_components[0, m, k])
                self.sums[m]["reward"] += float(engine.reward_components[0, m, k])
            if mech["transmits"]:
                self.sums[m]["messages"] += 1
                for channel, number in enumerate(mech["message"].tolist()):
                    place = min(math.floor((number + 1.0) / 2.0 * BINS), BINS - 1)
                    self.sums[m][f"message/{channel}/{place}"] += 1
            if mech["alive"]:
                self.living(m, mech, config.decision_seconds)
        events = read_events(engine, 0, self.names)
        for event in events:
            self.event(event, events)

    def living(self, m, mech, seconds):
        engine, sums, battle = self.engine, self.sums[m], self.engine.state.battles[0]
        sums["alive_seconds"] += seconds
        self.put(m, "presence", seconds)
        jets = engine.config.catalog.mech_classes[mech["mech_class"]].jet_acceleration > 0.0
        jets = jets and not mech["shutdown"] and not mech["fallen"]
        used = {"jet": jets and mech["jet"] > 0.0, "vent": mech["vent"]}
        for name, code in (("ecm", ECM), ("eccm", ECCM)):
            used[name] = mech["radiates"] == code and not mech["shutdown"]
        for name, uses in used.items():
            sums[f"{name}_seconds"] += seconds * bool(uses)
        off = math.hypot(mech["x"] - battle["zone_x"], mech["y"] - battle["zone_y"])
        low = mech["z"] < engine.config.zone.max_feet_height
        if off <= battle["zone_radius"] and low and mech["fallen"] == 0:
            sums["zone_seconds"] += seconds
        mechs, visible = engine.state.mechs[0], engine.state.visible[0]
        seen = [o for o in range(len(mechs)) if visible[m, o] != UNSEEN]
        if seen:
            nearest = min(math.hypot(mechs[o]["x"] - mech["x"], mechs[o]["y"] - mech["y"]) for o in seen)
            sums["seeing_seconds"] += seconds
            sums["distance_seconds"] += nearest * seconds
            sums["sight_seconds"] += seconds * any(visible[m, o] == IN_SIGHT for o in seen)
        sums["seen_seconds"] += seconds * any(visible[o, m] != UNSEEN for o in range(len(mechs)))

    def event(self, event, events):
        actor = None if event.actor is None else self.names.index(event.actor)
        target = None if event.target is None else self.names.index(event.target)
        if event.kind in COUNTED:
            self.sums[actor][COUNTED[event.kind]] += 1
        if event.kind in LASTING:
            name, begins = LASTING[event.kind]
            self.conditions[actor][name] = begins
        if event.kind in ("shot", "hit"):
            self.sums[actor][f"{event.kind}s"] += 1
            self.sums[actor][f"weapon/{event.weapon}/{event.kind}s"] += 1
        if event.kind == "shot" and target is None:
            self.sums[actor][f"weapon/{event.weapon}/untargeted"] += 1
        if event.kind == "impact":
            self.sums[actor]["terrain_broken"] += event.amount
        if event.kind in ("hit", "splash", "hazard") and event.amount > 0.0:
            cause = self.cause(event)
            self.sums[target]["damage_taken"] += event.amount
            self.sums[target][f"taken/{cause}"] += event.amount
            self.put(target, "damage_taken", event.amount)
            if cause in ("own", "friendly"):
                self.sums[actor]["friendly_damage"] += event.amount
            elif cause != "hazard":
                self.sums[actor]["damage_dealt"] += event.amount
                self.sums[actor][f"weapon/{event.weapon}/damage"] += event.amount
                self.put(actor, "damage_dealt", event.amount)
        if event.kind == "death":
            self.put(actor, "deaths", 1.0)
            now = float(self.engine.state.battles["step_count"][0] * self.engine.config.decision_seconds)
            self.dead_since.setdefault(self.teams[actor], now)
            for name, present in self.conditions[actor].items():
                self.sums[actor][name] += present
            blows = [
                each for each in events if each.target == event.actor and each.tick == event.tick and each.amount > 0.0
            ]
            total = sum(each.amount for each in blows)
            for each in blows:
                cause = self.cause(each)
                self.sums[actor][f"death/{cause}"] += each.amount / total
                if cause.startswith("weapon/"):
                    killer = self.sums[self.names.index(each.actor)]
                    killer["kills"] += each.amount / total
                    killer[f"weapon/{each.weapon}/kills"] += each.amount / total

    def cause(self, event):
        if event.actor is None:
            return "hazard"
        if event.actor == event.target:
            return "own"
        return "friendly" if event.actor.split("_")[0] == event.target.split("_")[0] else f"weapon/{event.weapon}"

    def put(self, m, which, amount):
        mech, cell = self.engine.state.mechs[0, m], self.engine.config.terrain.size / HEAT_CELLS
        row, column = int(mech["y"] // cell), int(mech["x"] // cell)
        self.heat[self.teams[m], which, row, column] += amount

    def by_class(self, team):
        roster, classes = self.engine.config.rosters[team], {}
        rows = [m for m, name in enumerate(self.teams) if name == ("blue", "red")[team]]
        for name, m in zip(roster, rows, strict=True):
            # nothing but the engine's state has assists and bad actions
            statistics = self.engine.state.statistics[0, m]
            others = {"mechs": 1.0, "assists": statistics["assists"], "bad_actions": statistics["bad_actions"]}
            sums = classes.setdefault(name, defaultdict(float))
            for key, value in [*self.sums[m].items(), *others.items()]:
                sums[key] += float(value)
        return {name: {key: value for key, value in sums.items() if value} for name, sums in classes.items()}

    def first_kill(self):
        """The sums of the battle's first kill: none if both teams' first mechs died in the same decision."""
        blue, red = (self.dead_since.get(team, math.inf) for team in ("blue", "red"))
        if blue == red:
            return {}
        won = int(self.engine.winner[0]) == (0 if red < blue else 1)
        return {"first_kills": 1.0, "first_kill_wins": float(won), "first_kill_seconds": min(blue, red)}

    def heatmaps(self, own):
        """The maps of both sides, turned as the battlefield map of the own team."""
        maps = np.zeros((2, len(HEAT_MAPS), HEAT_CELLS, HEAT_CELLS))
        turns = int(self.engine.state.teams["quarter_turns"][0, own])
        for (team, which, row, column), amount in self.heat.items():
            place = row, column
            for _ in range(turns):
                place = place[1], HEAT_CELLS - 1 - place[0]
            maps[("blue", "red").index(team) ^ own, HEAT_MAPS.index(which), *place] += amount
        return maps


def recounted(players, config, seeds):
    """(seed, side, a `Recount`) of every battle of a match."""
    for seed in seeds:
        for side in (0, 1):
            recount = None
            for arena in play(*players, config, [seed], side=side):
                if recount is None:
                    recount = Recount(arena.engine)
                else:
                    recount.decision()
            yield side, recount


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, sums in expected.items():
        assert found[name] == pytest.approx(sums, rel=1e-6, abs=1e-6), name  # rewards are float32


@pytest.mark.parametrize(
    ("config", "players"),
    [
        (DUEL, (talker("veteran"), talker("novice"))),
        (TEAMS, (talker("novice"), talker("expert"))),
        (UNEVEN, (talker("novice"), talker("novice"))),
        (SLOW, (baseline("novice"), baseline("novice"))),
    ],
    ids=["duel", "teams", "uneven", "long decisions, no messages"],
)
def test_statistics_are_those_of_the_events(config, players):
    totals = BattleTotals()
    match = play_match(*players, config, SEEDS, scenario="small", totals=totals, batch_size=3)
    own, enemy, heat, winners, scores, first_kills = [], [], 0.0, [], np.zeros(2), []
    for side, recount in recounted(players, config, SEEDS):
        own.append(recount.by_class(side))
        enemy.append(recount.by_class(1 - side))
        heat = heat + recount.heatmaps(side)
        first_kills.append(recount.first_kill())
        winner = int(recount.engine.winner[0])
        winners.append("draws" if winner == DRAW else "wins" if winner == side else "losses")
        scores += recount.engine.state.teams["score"][0, [side, 1 - side]]
    assert [*totals.opponents] == [players[1].name]
    for name, parts, counted in (("own", own, match.classes[0]), ("enemy", enemy, match.classes[1])):
        classes = {mech for part in parts for mech in part}
        assert counted.keys() == classes
        for mech, sums in totals.by_class(name).items():
            assert counted[mech] == pytest.approx({key: sums.get(key, 0.0) for key in counted[mech]})
        same(totals.by_class(name), {mech: sum_of(part.get(mech, {}) for part in parts) for mech in classes})
    assert [*totals.heatmaps] == [config.terrain.size]
    np.testing.assert_allclose(totals.heatmaps[config.terrain.size], heat, rtol=1e-9)
    results = totals.results()
    assert results["battles"] == totals.battles == len(winners) == 2 * len(SEEDS)
    assert {name: results[name] for name in ("wins", "draws", "losses")} == {
        name: winners.count(name) for name in ("wins", "draws", "losses")
    }
    assert (results["own_score"], results["enemy_score"]) == pytest.approx(tuple(scores))
    expected = sum_of(first_kills)
    assert {name: results[name] for name in expected} == pytest.approx(expected)
    assert sum_of([totals.sums("own"), totals.sums("enemy")])["damage_dealt"] > 0.0


def test_the_battles_of_the_recount_have_all_causes_and_conditions():
    """So that the comparison above proves something."""
    found, first_kills = {}, {}
    for config, levels in ((TEAMS, ("novice", "expert")), (UNEVEN, ("novice", "novice"))):
        totals = BattleTotals()
        play_match(*map(talker, levels), config, SEEDS, scenario="small", totals=totals)
        first_kills |= {each: value for each, value in totals.results().items() if value}
        found |= sum_of([totals.sums("own"), totals.sums("enemy"), found])
    assert {*parts_of(found, "taken")} >= {"friendly", "own", "hazard", "weapon/laser", "weapon/missiles"}
    assert {*parts_of(found, "death")} >= {"weapon/laser", "weapon/gauss"}
    assert min(found[name] for name in ("shutdowns", "falls", "assists", "paints", "deaths_shut_down", *USED)) > 0.0
    assert 0 < first_kills["first_kill_wins"] < first_kills["first_kills"]


def run(engine, decisions, players):
    for _ in range(decisions):
        engine.step(scripted_actions(engine, players))


def make_players():
    return opponents.make("novice", 1, "battle"), opponents.make("novice", 2, "battle")


def test_a_restored_observer_continues():
    config = make_config(TEAMS, max_steps=30)
    engine, again = (BattleEngine(config, 3) for _ in range(2))
    seeds = [4, 5, 6]
    observer, players = BattleObserver(engine), make_players()
    engine.reset(seeds)
    run(engine, 12, players)
    again.reset(seeds)
    again.restore(engine.snapshot())
    other = BattleObserver(again)
    other.restore_arrays(observer.state_arrays())
    actions = []
    while not engine.battle_over.all():
        actions.append(scripted_actions(engine, players))
        engine.step(actions[-1])
    for decision in actions:
        again.step(decision)
    assert [*observer.finished] == [*other.finished] == [0, 1, 2]
    for battle, record in observer.finished.items():
        np.testing.assert_array_equal(record.sums, other.finished[battle].sums)
        np.testing.assert_array_equal(record.heat, other.finished[battle].heat)


def test_battles_that_are_not_whole_are_not_measured():
    config = make_config(DUEL, max_steps=6)
    engine, players = BattleEngine(config, 3), make_players()
    engine.reset([1, 2, 3])
    engine.step(np.zeros((3, 2, engine.action_dim)))
    late = BattleObserver(engine)  # began after the battles
    engine.reset([4, 5, 6], mask=[True, False, True])
    run(engine, 3, players)
    engine.reset([7, 7, 7], mask=[False, False, True])  # before its end
    run(engine, 6, players)
    assert sorted(late.finished) == [0, 2]
    assert late.finished[0].sums[:, late.finished[0].names.index("alive_seconds")].max() <= 6 * config.decision_seconds
    late.finished.clear()
    engine.reset([8, 9, 10])
    run(engine, 2, players)
    engine.restore(engine.snapshot())
    run(engine, 6, players)
    assert late.finished == {}
    late.close()
    assert engine.observers == []


def test_bad_states_are_refused():
    engine = BattleEngine(DUEL, 2)
    observer = BattleObserver(engine)
    engine.reset([1, 2])
    arrays = observer.state_arrays()
    for cells, values, message in (([3], [np.nan], "finite"), ([-1], [1.0], "cells from 0"), ([0], [], "a value for")):
        given = {"cells": np.array(cells), "values": np.array(values)}
        with pytest.raises(ValueError, match=f"statistics of battles: .*{message}"):
            observer.restore_arrays(arrays | given)


@pytest.mark.parametrize(
    ("kinds", "condition"),
    [
        ((SHUTDOWN, RESTART), (0, 0)),
        ((RESTART, SHUTDOWN), (1, 0)),
        ((FALL, RISE), (0, 0)),
        ((RISE, FALL, RESTART), (0, 1)),
        ((FALL, SHUTDOWN), (1, 1)),
    ],
)
def test_the_condition_at_death_is_the_last_one_of_the_decision(kinds, condition):
    """Several changes in the decision of a death are too rare for the battles above: their events are written here."""
    engine = BattleEngine(DUEL)
    observer = BattleObserver(engine)
    engine.reset([1])
    state, victim = engine.state, 1
    events = [*((kind, victim, -1, 0.0) for kind in kinds), (HIT, 0, victim, 5.0), (DEATH, victim, -1, 0.0)]
    for event, (kind, actor, target, amount) in zip(state.events[0], events, strict=False):
        event["kind"], event["actor"], event["target"] = kind, actor, target
        event["amount"], event["weapon"] = amount, 0
    state.battles["num_events"] = len(events)
    state.mechs["alive"][0, victim], state.mechs["died"][0, victim], state.battles["over"] = 0, 1, 1
    observer.on_step(np.zeros((1, 2, engine.action_dim), np.float32))
    record = observer.finished[0]
    sums = dict(zip(record.names, record.sums[victim], strict=True))
    assert (sums["deaths_shut_down"], sums["deaths_fallen"]) == condition
    assert sums["death/weapon/laser"] == 1.0


@pytest.mark.parametrize("message", [np.nan, np.inf, -5.0])
def test_messages_of_battles_that_are_over_are_not_counted(message):
    """They are stepped on in a batch, and what is not clean stays so."""
    engine = BattleEngine(make_config("duel", max_steps=3), 2)
    observer = BattleObserver(engine)
    engine.reset([1, 2])
    actions = np.zeros((2, 2, Action.COMM_0 + COMM_DIM), np.float32)
    engine.step(actions)
    engine.reset([1, 3], mask=np.array([False, True]))
    for _ in range(2):
        engine.step(actions)
    assert engine.battle_over.tolist() == [True, False]
    actions[0, :, Action.COMM_0 :] = message
    engine.step(actions)
    assert engine.battle_over.all()
    for record in observer.finished.values():
        sums = dict(zip(record.names, record.sums.sum(axis=0).tolist(), strict=True))
        bins = {name: value for name, value in sums.items() if name.startswith("message/") and value}
        assert bins == {f"message/{channel}/{BINS // 2}": 6.0 for channel in range(COMM_DIM)}, "zeros, by two mechs"
