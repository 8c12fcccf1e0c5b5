"""Evaluation of a policy during and after a run: battles on maps that training never uses, each from both sides."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import Opponents, OpponentsLike
from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.evaluate import Battle, Match, Player, evaluation_seed, named_player, play_match
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_env.evaluate.estimates import Interval, wilson
from echelon_env.evaluate.matches import LOSS, TIE, WIN

SCENARIO = "evaluation"
"""The label of the matches of an evaluation."""


@dataclass(frozen=True)
class Evaluation:
    """Matches of a policy against one or several opponents.

    Shares of several opponents are means with the opponents' weights.
    """

    opponents: Opponents
    matches: tuple[Match, ...]  # one for each opponent, on different maps
    maps_trained_on: int | None  # of the matches' maps; None: unknown, but training never uses evaluation seeds
    trained_maps: int | None  # all maps that the player trained on
    totals: BattleTotals = field(default_factory=BattleTotals, compare=False)  # statistics of the battles

    @property
    def wins(self) -> Interval:
        """Share of the battles won, with its interval."""
        return self._share(WIN)

    @property
    def draws(self) -> Interval:
        """Share of the battles drawn."""
        return self._share(TIE)

    @property
    def losses(self) -> Interval:
        """Share of the battles lost."""
        return self._share(LOSS)

    @property
    def win_rates(self) -> dict[str, Interval]:
        """Opponent -> share of the battles won against it."""
        return {match.second: _match_share(match, WIN) for match in self.matches}

    @property
    def battles(self) -> tuple[Battle, ...]:
        """The battles of all matches."""
        return tuple(battle for match in self.matches for battle in match.battles)

    @property
    def maps(self) -> int:
        """Different maps, by content."""
        return len({battle.map_hash for battle in self.battles})

    def _share(self, outcome: int) -> Interval:
        """The weighted mean of the matches' shares: of one match with its Wilson score interval.

        The distances of several matches' bounds from their shares are combined as independent errors (MOVER): Zou,
        Huang and Zhang, "A note on confidence interval estimation for a linear function of binomial proportions", 2009.
        """
        weights = np.array(self.opponents.weights) / sum(self.opponents.weights)
        shares = [_match_share(match, outcome) for match in self.matches]
        estimates, lows, highs = np.array([(share.estimate, share.low, share.high) for share in shares]).T
        mean = float(weights @ estimates)
        below, above = (float(np.hypot.reduce(weights * (bounds - estimates))) for bounds in (lows, highs))
        return Interval(mean, mean - below, mean + above)


def _match_share(match: Match, outcome: int) -> Interval:
    """The share of a match's battles with an outcome, with its Wilson score interval."""
    return wilson(sum(battle.outcome == outcome for battle in match.battles), len(match.battles))


def evaluate(
    player: Player,
    opponents: OpponentsLike,
    config: BattleConfig,
    *,
    num_battles: int,
    seed: int,
    map_seeds: Sequence[int] | None = None,
    num_threads: int = 1,
) -> Evaluation:
    """Play against named opponents on maps that follow from a seed, see `echelon_env.evaluate.play_match`.

    Each opponent plays its share of the battles, rounded to an even number of at least 2, on other maps than the
    others.

    Parameters
    ----------
    num_battles
        Battles to play, an even number: every map is played from both sides.
    seed
        Seed of the evaluation, in [0, 2**64): of the maps and of the levels' choices.
    map_seeds
        Seeds of the maps instead, all different, in `EVALUATION_SEEDS`: one for every two battles. The first maps are
        those against the first opponent.
    num_threads
        Threads that share the battles and the players' mechs; changes speed, not the result.

    Raises
    ------
    ConfigError
        For an unknown opponent or an impossible number.
    ValueError
        For a seed out of range, and for too few or equal seeds of maps.
    """
    opponents = Opponents.parse(opponents).check_playable()
    maps, matches, first, totals = maps_by_opponent(opponents, num_battles), [], 0, BattleTotals()
    if map_seeds is None:
        map_seeds = [evaluation_seed(seed, index) for index in range(sum(maps))]
    if len(set(map_seeds)) != sum(maps):
        raise ValueError(f"map_seeds: expected {sum(maps)} different seeds, got {len(set(map_seeds))}")
    for opponent, count in zip(opponents.members, maps, strict=True):
        seeds = map_seeds[first : first + count]
        rival = named_player(opponent, seed)
        matches.append(
            play_match(player, rival, config, seeds, scenario=SCENARIO, num_threads=num_threads, totals=totals)
        )
        first += count
    evaluation = Evaluation(opponents, tuple(matches), None, None, totals)
    known = player.trained_maps
    if known is None:
        return evaluation
    played = {battle.map_hash for battle in evaluation.battles}
    return dataclasses.replace(evaluation, maps_trained_on=len(played & known), trained_maps=len(known))


def maps_by_opponent(opponents: Opponents, num_battles: int) -> list[int]:
    """The number of maps against each opponent: one, and the others where a weight's share lacks most."""
    check_battles(num_battles, opponents)
    shares = np.array(opponents.weights) / sum(opponents.weights) * (num_battles // 2)
    maps = np.ones(len(shares), np.int64)
    while maps.sum() < num_battles // 2:
        maps[np.argmax(shares - maps)] += 1
    return maps.tolist()


def check_battles(num_battles: int, opponents: Opponents | None = None) -> None:
    """Raise ConfigError unless an evaluation can have so many battles: an even number, two for each opponent."""
    if check_integer("battles", num_battles, 2) % 2:
        raise ConfigError(f"battles: expected an even number, as maps are played from both sides, got {num_battles}")
    if opponents is not None and num_battles < 2 * len(opponents.members):
        raise ConfigError(f"battles: expected two for each opponent of {opponents}, got {num_battles}")
