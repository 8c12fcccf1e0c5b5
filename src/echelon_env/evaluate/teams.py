"""Teams whose mechs are driven by several players."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError
from echelon_env.engine.boundary import read_actions
from echelon_env.evaluate.players import BattleNoise, Floats, Player
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import Policy
from echelon_env.opponents.policy import close_policy

TEAM = "+"
"""Between the names of a team's players."""


def team_of(*members: Player) -> Player:
    """A player whose mechs are driven by the members in turn: mech i of the roster by member i modulo their number.

    Each member observes its own mechs only, and gets the messages of all pack-mates, as in any team. The name is that
    of the members, joined by "+". A policy of it raises ConfigError for a team with fewer mechs than members.

    Raises ConfigError for fewer than two members, and for a member that is a team.

    >>> from echelon_env.evaluate.players import baseline
    >>> team_of(baseline("expert"), baseline("novice")).name
    'expert+novice'
    """
    if len(members) < 2:
        raise ConfigError(f"a team of players: expected at least 2, got {len(members)}")
    for member in members:
        if isinstance(member.make, _Members):
            raise ConfigError(f"a team of players: expected single players, got the team {member.name}")
    battles = {member.battle for member in members if member.battle is not None}
    known = [member.trained_maps for member in members if member.trained_maps is not None]
    return Player(
        TEAM.join(member.name for member in members),
        TEAM.join(dict.fromkeys(member.action_mode for member in members)),
        _Members(members),
        battles.pop() if len(battles) == 1 else None,
        frozenset().union(*known) if known else None,
        {f"{place}.{key}": value for place, each in enumerate(members) for key, value in each.identity.items()},
    )


def teams_beside(player: Player, partners: Sequence[Player]) -> tuple[Player, ...]:
    """The teams that measure how a player plays beside its partners.

    They are the player's copies, and for each partner the two `mixed` teams and the partner's copies.
    """
    beside = ((*mixed(player, partner), partner) for partner in partners)
    return (player, *itertools.chain.from_iterable(beside))


def mixed(player: Player, partner: Player) -> tuple[Player, Player]:
    """The two teams of both, in which each drives the mechs that the other one drives in the other team."""
    return team_of(player, partner), team_of(partner, player)


def check_rosters(player: Player, config: BattleConfig) -> None:
    """Raise ConfigError if a player is a team of more members than a team of the battle has mechs."""
    if isinstance(player.make, _Members):
        player.make.check(min(map(len, config.rosters)))


@dataclass(frozen=True)
class _Members:
    """Makes the policies of a team of players."""

    members: tuple[Player, ...]

    def check(self, size: int) -> None:
        """Raise ConfigError for a team of fewer mechs than members."""
        count = len(self.members)
        if size < count:
            names = TEAM.join(member.name for member in self.members)
            raise ConfigError(f"{names}: expected a team of at least {count} mechs, got {size}")

    def __call__(self, config: BattleConfig, noise: BattleNoise) -> _TeamPolicy:
        size, count = noise.team_size, len(self.members)
        self.check(size)
        rows = np.arange(len(noise.seeds) * size)
        with contextlib.ExitStack() as made:
            policies = []
            for place, member in enumerate(self.members):
                own = len(range(place, size, count))
                of_member = BattleNoise(noise.seeds, (*noise.stream, place), own, noise.num_threads)
                policies.append(member.make(config, of_member))
                made.callback(close_policy, policies[-1])
            made.pop_all()
        return _TeamPolicy(policies, [rows[rows % size % count == place] for place in range(count)])


class _TeamPolicy:
    """The policies of several players, each for its own rows (n,) of a team."""

    def __init__(self, policies: Sequence[Policy], rows: Sequence[NDArray[np.int64]]) -> None:
        self._parts = [*zip(policies, rows, strict=True)]

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the rows (R,) where the mask is true."""
        for policy, rows in self._parts:
            policy.reset(mask[rows])

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32."""
        actions = np.zeros((len(observations), ACTION_DIM), np.float32)
        for policy, rows in self._parts:
            given = policy.act(observations[rows])
            actions[rows] = read_actions(given, (len(rows), ACTION_DIM), "actions of a team's player")
        return actions

    def close(self) -> None:
        """Close all policies, also if one fails."""
        with contextlib.ExitStack() as stack:
            for policy, _ in self._parts:
                stack.callback(close_policy, policy)
