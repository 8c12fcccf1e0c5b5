"""Recorded matches played again, to check or show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import echelon_env.replays
from echelon_env.evaluate import Match, Player, play_match, stamp
from echelon_env.evaluate.networks import checkpoint_player
from echelon_env.evaluate.players import check_action_mode
from echelon_env.replays import record_battle
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.jobs import as_member, member_player
from echelon_train.league.store.members import Member, check_files, member_folder
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League

DECISIVE: Final = {
    "engine_hash": "the rules, the engine, or what players observe",
    "opponents_hash": "the scripted players, or how players draw random numbers",
}
"""Keys of a match's stamp that determine the course of its battles, with what each covers."""


@dataclass(frozen=True)
class Replay:
    """A match played again."""

    played: PlayedMatch  # as recorded
    match: Match  # as played now
    cautions: tuple[str, ...]  # what has changed since it was recorded
    different: tuple[int, ...]  # numbers of the battles that ended differently

    @property
    def same(self) -> bool:
        """Whether every battle ended as recorded: its map, winner, reason, time, scores and survivors."""
        return not self.different


def replay(league: League, uuid: str, *, force: bool = False) -> Replay:
    """Play a recorded match again, with the same members on the same maps.

    `uuid` is that of the match, or a prefix that no other match has. `force` plays it even if its battles may end
    differently.

    Raises
    ------
    LeagueError
        If there is no such match. Without `force`, also if the engine, the scripted players or a policy's files have
        changed since; the message has all reasons.
    CheckpointError
        With `force`, if a policy's files are unusable.
    """
    played, (first, second), cautions = _prepare(league, uuid, force)
    recorded = played.match
    seeds = [battle.seed for battle in recorded.battles[::2]]
    match = play_match(first, second, played.config, seeds, scenario=recorded.scenario)
    pairs = zip(recorded.battles, match.battles, strict=True)
    return Replay(played, match, cautions, tuple(before.number for before, after in pairs if before != after))


def record(
    league: League, uuid: str, number: int, *, force: bool = False
) -> tuple[echelon_env.replays.Replay, tuple[str, ...]]:
    """Play a battle of a recorded match again; returns its replay, and the cautions of `Replay`.

    The number of a battle is 2 * (number of the map), plus 1 for the battle in which the first player is red. Raises as
    `replay`, and LeagueError for a battle that the match does not have.
    """
    played, (first, second), cautions = _prepare(league, uuid, force)
    battles = played.match.battles
    if number not in range(len(battles)):
        raise LeagueError(f"match {played.uuid}: has the battles 0 to {len(battles) - 1}, got {number!r}")
    battle = battles[number]
    return record_battle(first, second, played.config, seed=battle.seed, side=battle.side), cautions


def _prepare(league: League, uuid: str, force: bool) -> tuple[PlayedMatch, tuple[Player, Player], tuple[str, ...]]:
    played = league.match(uuid)
    members = league.member(played.match.first), league.member(played.match.second)
    present = stamp()
    reasons = [f"{what} have changed since" for key, what in DECISIVE.items() if played.stamp.get(key) != present[key]]
    altered = {member.name: check_files(league.path, member) for member in members}
    reasons += [f"{name!r}: {problem}" for name, problems in altered.items() for problem in problems]
    if reasons and not force:
        raise LeagueError(f"match {played.uuid}: cannot be reproduced: {'; '.join(reasons)}")
    others = sorted((played.stamp.keys() | present.keys()) - DECISIVE.keys())
    versions = [
        f"{key}: {present.get(key)} now, {played.stamp.get(key)} then"
        for key in others
        if played.stamp.get(key) != present.get(key)
    ]
    first, second = (
        _player(league, member, mode, checked=not altered[member.name])
        for member, mode in zip(members, played.match.action_modes, strict=True)
    )
    return played, (first, second), (*reasons, *versions)


def _player(league: League, member: Member, mode: str, *, checked: bool) -> Player:
    if member.weights_sha256 is None:
        return member_player(league.path, member)
    action_mode = check_action_mode(mode)
    if checked:
        return member_player(league.path, member, action_mode=action_mode)
    player = checkpoint_player(member_folder(league.path, member.weights_sha256), action_mode=action_mode)
    return as_member(player, member.name)
