"""Evaluation of a policy during and after a run: battles on maps that training never uses, each from both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import Opponent
from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.evaluate import Match, Player, evaluation_seed, named_player, play_match
from echelon_env.evaluate.statistics import CONFIDENCE, Interval, wilson


@dataclass(frozen=True)
class Evaluation:
    """A match of a policy against an opponent, on maps that follow from a seed."""

    match: Match
    seed: int
    maps_trained_on: int | None  # of the match's maps; None: unknown, but training never uses evaluation seeds
    trained_maps: int | None  # all maps that the player trained on

    @property
    def wins(self) -> Interval:
        """Share of the battles won, with its Wilson score interval."""
        return self._share(self.match.wins)

    @property
    def draws(self) -> Interval:
        """Share of the battles drawn."""
        return self._share(self.match.draws)

    @property
    def losses(self) -> Interval:
        """Share of the battles lost."""
        return self._share(self.match.losses)

    @property
    def maps(self) -> int:
        """Different maps, by content."""
        return len({battle.map_hash for battle in self.match.battles})

    def to_dict(self) -> dict[str, Any]:
        """The result and all that it depends on, as plain values."""
        match = self.match
        shares = {
            "win": (match.wins, self.wins),
            "draw": (match.draws, self.draws),
            "loss": (match.losses, self.losses),
        }
        return {
            "player": match.first,
            "action_mode": match.action_modes[0],
            "opponent": match.second,
            "seed": self.seed,
            "battles": len(match.battles),
            "maps": self.maps,
            "maps_trained_on": self.maps_trained_on,
            "trained_maps": self.trained_maps,
            "confidence": CONFIDENCE,
            **{
                name: {"count": count, "share": share.estimate, "interval": [share.low, share.high]}
                for name, (count, share) in shares.items()
            },
            "outcomes": [battle.outcome for battle in match.battles],
        }

    def _share(self, count: int) -> Interval:
        return wilson(count, len(self.match.battles))


def evaluate(
    player: Player, opponent: Opponent | str, config: BattleConfig, *, num_battles: int, seed: int, num_threads: int = 1
) -> Evaluation:
    """Play against a named opponent on maps that follow from a seed, see `echelon_env.evaluate.play_match`.

    Parameters
    ----------
    player
        The player to evaluate.
    opponent
        Its name, see `echelon_env.evaluate.named_player`.
    config
        The battle.
    num_battles
        Battles to play, an even number: every map is played from both sides.
    seed
        Seed of the evaluation, in [0, 2**64): of the maps and of the level's choices.
    num_threads
        Threads that step the battles; changes speed, not the result.

    Raises
    ------
    ConfigError
        For an unknown opponent or an impossible number.
    ValueError
        For a seed out of range.
    """
    check_battles(num_battles)
    seeds = [evaluation_seed(seed, index) for index in range(num_battles // 2)]
    rival = named_player(opponent, seed)
    match = play_match(player, rival, config, seeds, scenario="evaluation", num_threads=num_threads)
    known = player.trained_maps
    if known is None:
        return Evaluation(match, seed, None, None)
    return Evaluation(match, seed, len({battle.map_hash for battle in match.battles} & known), len(known))


def check_battles(num_battles: int) -> None:
    """Raise ConfigError unless a number of battles is one that an evaluation can have: even, and at least 2."""
    if check_integer("battles", num_battles, 2) % 2:
        raise ConfigError(f"battles: expected an even number, as maps are played from both sides, got {num_battles}")
