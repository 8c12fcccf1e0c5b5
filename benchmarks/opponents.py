"""What scripted players cost beside the engine, and what handicaps make of the expert.

Run ``python benchmarks/opponents.py``: live mechs per second that each player decides for, beside the engine's live
agent-steps per second in the same battles, on one core, and the ratio of their times; battles that are over restart
at once, which is not timed. The players take turns over several rounds, and medians are printed. ``--handicaps`` plays
handicapped experts against experts instead, every map from both sides.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from typing import Any

import numpy as np

from echelon_env import BattleEngine, opponents
from echelon_env.opponents import LEVELS, Handicap, Policy

BATCH = 64
SCENARIOS = {"5 v 5": "skirmish", "10 v 10": "battle"}
PLAYERS: dict[str, dict[str, Any]] = {level: {"opponent": level} for level in LEVELS} | {
    "all five in turn": {"opponent": dict.fromkeys(LEVELS, 1)},
    "expert, handicapped": {"opponent": "expert", "reaction_delay": 0.5, "aim_error": 0.5, "fire_rate": 0.5},
}
RAMPS = {
    "reaction_delay": (0.0, 0.25, 0.5, 1.0, 2.0),
    "aim_error": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5),
    "fire_rate": (1.0, 0.9, 0.75, 0.5, 0.25, 0.1),
}


def speeds(engine: BattleEngine, given: dict[str, Any], seconds: float) -> tuple[float, float]:
    """Live mechs/s of a player that plays both sides, and of the engine, in battles of about `seconds` of wall time."""
    player = opponents.make(**given, seed=0, config=engine.config)
    thinking = stepping = 0.0
    mechs, seeds, over = 0, np.arange(BATCH), np.ones(BATCH, np.bool_)
    while thinking + stepping < seconds:
        if over.any():
            observations = engine.reset(seeds, over)
            player.reset(np.repeat(over, engine.num_mechs))
            seeds += BATCH
        mechs += int(engine.alive.sum())
        times = [time.perf_counter()]
        actions = player.act(observations.reshape(-1, engine.observation_dim))
        times.append(time.perf_counter())
        observations, *_ = engine.step(actions.reshape(BATCH, engine.num_mechs, -1))
        times.append(time.perf_counter())
        thinking += times[1] - times[0]
        stepping += times[2] - times[1]
        over = engine.battle_over.copy()
    return mechs / thinking, mechs / stepping


def print_speeds(seconds: float, rounds: int) -> None:
    engines = {size: BattleEngine(scenario, BATCH) for size, scenario in SCENARIOS.items()}
    for given in PLAYERS.values():
        speeds(engines["5 v 5"], given, 0.01)  # compiles
    results: dict[tuple[str, str], list[tuple[float, float]]] = {(p, size): [] for p in PLAYERS for size in engines}
    for _ in range(rounds):
        for player, size in results:
            results[player, size].append(speeds(engines[size], PLAYERS[player], seconds))
    print(f"{'per second, one thread':24}" + "".join(f"{size:>10}{'engine':>11}{'cost':>7}" for size in engines))
    for player in PLAYERS:
        cells = []
        for size in engines:
            thought, stepped = (statistics.median(column) for column in zip(*results[player, size], strict=True))
            cells.append(f"{thought:10,.0f}{stepped:11,.0f}{stepped / thought:7.0%}")
        print(f"{player:24}" + "".join(cells))
    print(
        "player: live mechs decided for; engine: live agent-steps; cost: the player's time as a share of the engine's"
    )


def points(engine: BattleEngine, subject: Policy, rival: Policy) -> float:
    """The subject's mean score, a win 1 and a draw 1/2; pairs of battles are a map from both sides."""
    team = len(engine.config.blue)
    observations = engine.reset(np.repeat(np.arange(engine.num_battles // 2), 2))
    red = (np.arange(engine.num_battles) % 2 == 1)[:, None, None]
    for player in (subject, rival):
        player.reset(np.ones(engine.num_battles * team, np.bool_))
    while not engine.battle_over.all():
        sides = observations[:, :team], observations[:, team:]
        own, other = np.where(red, sides[1], sides[0]), np.where(red, sides[0], sides[1])
        a, b = (
            player.act(rows.reshape(-1, engine.observation_dim)).reshape(*rows.shape[:2], -1)
            for player, rows in ((subject, own), (rival, other))
        )
        observations, *_ = engine.step(np.concatenate([np.where(red, b, a), np.where(red, a, b)], axis=1))
    wins = engine.winner == red[:, 0, 0]
    losses = engine.winner == ~red[:, 0, 0]
    return float(np.mean(wins + 0.5 * (~wins & ~losses)))


def print_handicaps(battles: int) -> None:
    engine = BattleEngine("skirmish", battles, time_limit="terminate")
    rival = opponents.make("expert", 1, engine.config)
    print(f"score of a handicapped expert against experts in skirmish, {battles} battles")
    for name, values in RAMPS.items():
        player = Handicap(opponents.make("expert", 2, engine.config), engine.config)
        cells = []
        for value in values:
            setattr(player, name, value)
            cells.append(f"{value:g}: {points(engine, player, rival):.0%}")
        print(f"{name:16}" + "  ".join(f"{cell:>10}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="time of battles per row and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--handicaps", action="store_true")
    parser.add_argument("--battles", type=int, default=200, help="for each value of a handicap, an even number")
    options = parser.parse_args()
    if options.battles < 2 or options.battles % 2:
        parser.error(f"--battles: expected an even number of at least 2, got {options.battles}")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    if options.handicaps:
        print_handicaps(options.battles)
    else:
        print_speeds(options.seconds, options.rounds)


if __name__ == "__main__":
    main()
