"""Matches: two players on many maps, every map from both sides.

A battle depends only on the two players, the configuration, the map's seed and the side. It does not depend on the
other battles of the match, their order, the batch or the number of threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.engine.boundary import read_actions
from echelon_env.engine.state import BLUE, DRAW, REASONS, RED
from echelon_env.envs.controlled import ControlledBattles
from echelon_env.evaluate.battle_observer import BattleObserver
from echelon_env.evaluate.battle_totals import COUNTED, BattleTotals, Sums, add_sums, count
from echelon_env.evaluate.players import BattleNoise, Player
from echelon_env.evaluate.seeds import EVALUATION_SEEDS, check_seeds
from echelon_env.evaluate.stamps import battle_hash
from echelon_env.opponents import Policy
from echelon_env.opponents.policy import close_policy

WIN, TIE, LOSS = 1, 0, -1
"""Outcomes of a battle for the first player."""

SIDES = (BLUE, RED)
"""The first player's team: blue in a map's first battle, red in its second."""

BATCH_SIZE = 64
"""Default number of battles stepped at once."""

Identity = Mapping[str, str | int]


@dataclass(frozen=True)
class Battle:
    """A battle of a match."""

    number: int  # 2 * map + side
    seed: int  # of the map and of the battle, in EVALUATION_SEEDS
    map_hash: str  # content hash
    side: int  # 0: the first player is blue; 1: red, on the same map and in the same places
    outcome: int  # 1 the first player won, 0 draw, -1 it lost
    reason: str  # "zone_control", "elimination" or "time_limit"
    seconds: float  # s of battle time
    scores: tuple[float, float]  # s of zone control of (first, second)
    survivors: tuple[int, int]  # mechs of (first, second)


@dataclass(frozen=True)
class Match:
    """The battles of two players in one scenario."""

    scenario: str  # a label
    first: str  # name of the player
    second: str
    action_modes: tuple[str, str]
    battles: tuple[Battle, ...]  # maps in order, side 0 then side 1
    classes: tuple[Mapping[str, Sums], Mapping[str, Sums]]
    """For (first, second): mech class -> the sums `COUNTED` over all battles."""
    config_hash: str = ""  # `battle_hash` of the configuration; empty for a match that was not played
    identities: tuple[Identity, Identity] = ({}, {})  # of (first, second), see `Player.identity`

    @property
    def wins(self) -> int:
        """Number of battles that the first player won."""
        return self._count(WIN)

    @property
    def draws(self) -> int:
        """Number of drawn battles."""
        return self._count(TIE)

    @property
    def losses(self) -> int:
        """Number of battles that the first player lost."""
        return self._count(LOSS)

    def _count(self, outcome: int) -> int:
        return sum(battle.outcome == outcome for battle in self.battles)


def play_match(
    first: Player,
    second: Player,
    config: BattleConfig,
    seeds: Sequence[int],
    *,
    scenario: str,
    batch_size: int = BATCH_SIZE,
    num_threads: int = 1,
    on_battles: Callable[[int], None] | None = None,
    totals: BattleTotals | None = None,
) -> Match:
    """Play two players against each other on maps of an evaluation, each from both sides.

    Parameters
    ----------
    first, second
        The players, which may be the same. Every call of a policy's ``act`` gets a new contiguous array that is not
        overwritten later. Rows of battles that are over are zeros.
    config
        The battle's configuration. The rosters may differ. The rules decide the winner of a battle at its time limit,
        whether the limit terminates or truncates.
    seeds
        Seeds of the maps, all different, in `EVALUATION_SEEDS`.
    scenario
        A name for the configuration.
    batch_size
        Number of battles stepped at once, at least 1. Affects speed and memory, not the result.
    num_threads
        Number of threads that share the battles and the players' mechs, at least 1. Affects speed, not the result.
    on_battles
        A callback that gets the number of finished battles whenever it has increased.
    totals
        Statistics to which those of the battles are added, as the first player's against the second.

    Raises
    ------
    ValueError
        For no seeds, the same seed twice, or a seed out of range.
    TypeError
        If one of the players is not a `Player`, or the configuration no `BattleConfig`.
    ConfigError
        For an invalid number, two different players with the same name, or players that make the same policy object.
    """
    _check_players(first, second)
    if not isinstance(config, BattleConfig):
        raise TypeError(f"config: expected a BattleConfig, such as of make_config('duel'), got {config!r}")
    seeds = _check_map_seeds(seeds)
    batch_size = check_integer("batch_size", batch_size)
    battles: list[Battle] = []
    counts: tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]] = [], []  # by side
    reported = 0
    for start in range(0, len(seeds), batch_size):
        batch = seeds[start : start + batch_size]
        halves = []
        with contextlib.closing(_arena(config, len(batch), num_threads)) as arena:
            observer = None if totals is None else BattleObserver(arena.engine)
            for side in SIDES:
                for _ in _fight(arena, (first, second), batch, side):
                    finished = len(battles) + side * len(batch) + int(arena.battle_over.sum())
                    if on_battles is not None and finished > reported:
                        on_battles(finished)
                    reported = finished
                halves.append(battle_results(arena, start, side))
                counts[side].append(count(arena.engine.statistics, arena.engine.shots, arena.engine.hits))
                if observer is not None and totals is not None:
                    for record in observer.finished.values():
                        totals.add(record.totals(second.name, side))
        battles += [battle for pair in zip(*halves, strict=True) for battle in pair]
    sums = [np.concatenate(each).sum(axis=0) for each in counts]
    return Match(
        scenario,
        first.name,
        second.name,
        (first.action_mode, second.action_mode),
        tuple(battles),
        (_by_class(config, sums, 0), _by_class(config, sums, 1)),
        battle_hash(config),
        (first.identity, second.identity),
    )


def play(
    first: Player, second: Player, config: BattleConfig, seeds: Sequence[int], *, side: int = 0, num_threads: int = 1
) -> Generator[ControlledBattles, None, None]:
    """Play battles of a match on some maps from one side. Yield them at their start and after every decision.

    The battles are exactly those that `play_match` plays on these maps. The same object is yielded each time. It must
    only be read, for example its ``.engine``. The iteration ends when all battles are over. `side` is the first
    player's team: 0 blue, 1 red. The other arguments and the errors are those of `play_match`.
    """
    _check_players(first, second)
    if side not in SIDES:
        raise ConfigError(f"side: expected 0 (blue) or 1 (red), got {side!r}")
    seeds = _check_map_seeds(seeds)

    def battles() -> Generator[ControlledBattles, None, None]:
        with contextlib.closing(_arena(config, len(seeds), num_threads)) as arena:
            yield from _fight(arena, (first, second), seeds, side)

    return battles()


def _check_players(first: Player, second: Player) -> None:
    for player in (first, second):
        if not isinstance(player, Player):
            raise TypeError(f"expected a Player, such as baseline('idle') or Player(name, mode, make), got {player!r}")
    if first.name == second.name and first != second:
        raise ConfigError(f"two different players are called {first.name!r}: expected different names")


def _check_map_seeds(seeds: Sequence[int]) -> Sequence[int]:
    if len(seeds) == 0:
        raise ValueError("seeds: expected at least one")
    check_seeds(seeds, EVALUATION_SEEDS)
    if len(set(seeds)) < len(seeds):
        raise ValueError("seeds: expected different seeds, got duplicates")
    return seeds


def _arena(config: BattleConfig, num_battles: int, num_threads: int) -> ControlledBattles:
    return ControlledBattles(config, num_battles, control="all", num_threads=num_threads)


def _fight(
    arena: ControlledBattles, players: tuple[Player, Player], seeds: Sequence[int], side: int
) -> Generator[ControlledBattles, None, None]:
    """Play the battles of the seeds in the arena. The first player has team `side`."""
    engine, config = arena.engine, arena.config
    teams = slice(len(config.blue)), slice(len(config.blue), None)
    rows = [teams[place ^ side] for place in range(len(players))]  # of each player
    policies = _make_policies(players, config, seeds, side, engine.num_threads)
    observations = arena.reset(np.array(seeds, np.uint64))
    for policy, mechs in zip(policies, rows, strict=True):
        policy.reset(np.ones(observations[:, mechs].shape[:2], np.bool_).ravel())
    actions = np.zeros((len(seeds), engine.num_mechs, engine.action_dim), np.float32)
    try:
        yield arena
        while not arena.battle_over.all():
            for player, policy, mechs in zip(players, policies, rows, strict=True):
                seen = observations[:, mechs].copy()  # contiguous, and no part of what the other player sees
                seen[arena.battle_over] = 0.0  # as of dead mechs, for which players compute nothing
                given = policy.act(seen.reshape(-1, engine.observation_dim))
                shape = (seen.shape[0] * seen.shape[1], engine.action_dim)
                checked = read_actions(given, shape, f"actions of the player {player.name!r}")
                actions[:, mechs] = checked.reshape(*seen.shape[:2], -1)
            observations = arena.step(actions)[0]
            yield arena
    finally:
        with contextlib.ExitStack() as stack:
            for policy in policies:
                stack.callback(close_policy, policy)


def _make_policies(
    players: tuple[Player, Player], config: BattleConfig, seeds: Sequence[int], side: int, num_threads: int
) -> tuple[Policy, Policy]:
    policies: list[Policy] = []
    for place, player in enumerate(players):
        team_size = len(config.rosters[place ^ side])
        policy = player.make(config, BattleNoise(seeds, (side, place), team_size, num_threads))
        if isinstance(policy, type) or not isinstance(policy, Policy):
            function = callable(policy) and not isinstance(policy, type)
            hint = "; FunctionPolicy of echelon_env.opponents wraps a function" if function else ""
            raise ConfigError(f"player {player.name!r}: expected a policy with reset and act, got {policy!r}{hint}")
        policies.append(policy)
    first, second = policies
    if first is second:
        raise ConfigError(
            f"players {players[0].name!r} and {players[1].name!r} make the same policy object; each needs its own"
        )
    return first, second


def battle_results(arena: ControlledBattles, first_map: int, side: int) -> list[Battle]:
    """The results of the finished battles in the arena, whose maps have the numbers from `first_map` on."""
    state, winners = arena.engine.state, arena.engine.winner
    players = [side, 1 - side]  # teams of (first, second)
    return [
        Battle(
            number=2 * (first_map + place) + side,
            seed=int(battle["seed"]),
            map_hash=arena.engine.terrain(place).content_hash,
            side=side,
            outcome=TIE if winners[place] == DRAW else WIN if winners[place] == side else LOSS,
            reason=REASONS[battle["reason"]],
            seconds=float(battle["step_count"] * arena.config.decision_seconds),
            scores=tuple(teams["score"][players].tolist()),
            survivors=tuple(teams["mechs_alive"][players].tolist()),
        )
        for place, (battle, teams) in enumerate(zip(state.battles, state.teams, strict=True))
    ]


def _by_class(config: BattleConfig, totals: Sequence[NDArray[np.float64]], place: int) -> dict[str, Sums]:
    """A player's sums by mech class, from those of the mechs (mechs, sums) over the battles of each side."""
    classes: dict[str, Sums] = {}
    for side in SIDES:
        team = place ^ side
        start = team * len(config.blue)
        for name, row in zip(config.rosters[team], totals[side][start:].tolist(), strict=False):
            add_sums(classes.setdefault(name, {}), dict(zip(COUNTED, row, strict=True)))
    return classes
