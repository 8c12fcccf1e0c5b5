"""Making submissions from played matches, and verifying them: battles are recorded and replayed."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate.matches import BATCH_SIZE, LOSS, SIDES, WIN, Battle, Match, battle_results, play
from echelon_env.evaluate.players import Player, baseline
from echelon_env.evaluate.stamps import stamp
from echelon_env.evaluate.submission.actions import Floats, pack_actions, playback, unpack_actions
from echelon_env.evaluate.submission.document import (
    BattleKey,
    Draw,
    Method,
    Submission,
    SubmissionError,
    battle_key,
    check_player,
    decisions,
    default_method,
    drawn_battles,
    proved_battles,
    with_configs,
)
from echelon_env.evaluate.suite import Suite
from echelon_env.layout.actions import ACTION_DIM

_OUTCOMES = {WIN: "won", LOSS: "lost"}


def make_submission(
    matches: Sequence[Match],
    *,
    player: Player,
    suite: Suite,
    method: Method | None = None,
    num_threads: int = 1,
) -> Submission:
    """Make a submission from a player's matches on a suite. Plays the battles again, and records those not lost.

    The player is the first of the matches, against all opponents of the suite in one or several of its scenarios. In
    each scenario they are on all maps, or on the same number of its first maps. By default the method's name is the
    last part of the player's, which may be a path.

    Raises SubmissionError for other matches, and for a player whose battle ends differently when it is played again;
    SuiteError for a match that was not played on the suite's maps.
    """
    if method is None:
        method = default_method(player)
    bare = [
        dataclasses.replace(each, first=method.name, classes=({}, {}), identities=(player.identity, {}))
        for each in _ordered(matches, player, suite)
    ]
    submission = Submission(
        method,
        *check_player(player.action_mode, player.identity),
        suite,
        stamp(),
        tuple(bare),
    )
    proofs = {
        key: pack_actions(actions)
        for match, config in with_configs(submission)
        for side in SIDES
        for key, actions in _record(player, config, match, side, num_threads)
    }
    return dataclasses.replace(submission, proofs={key: proofs[key] for key in proved_battles(submission)})


def verify_submission(submission: Submission, draw: Draw | None = None, *, num_threads: int = 1) -> tuple[str, ...]:
    """Replay battles: the recorded actions against the suite's opponents, on the suite's maps.

    `draw` chooses the battles; by default all that were not lost are replayed. Returns a sentence for each battle that
    has not the stated outcome, reason, number of decisions, scores and survivors; none if the submission is verified.

    Raises SubmissionError if the submission was played with other rules or opponents than the installed ones, or a
    proof is none; SuiteError if the suite's scenarios differ from the installed ones.
    """
    _check_behaviour(submission)
    drawn, failures = frozenset(drawn_battles(submission, draw)), []
    for match, config in with_configs(submission):
        for side in SIDES:
            chosen = [battle for battle in match.battles[side::2] if battle_key(match, battle) in drawn]
            for battles in _batches(chosen):
                recording = {battle.seed: _unpack(submission, match, battle, config) for battle in battles}
                found = _play(playback(recording), baseline(match.second), config, battles, side, num_threads)
                failures += [
                    f"battle {battle.number} of {match.scenario} against {match.second}: stated "
                    f"{_describe(battle, config)}, replayed {_describe(replayed, config)}"
                    for battle, replayed in zip(battles, found, strict=True)
                    if not _is_same(battle, replayed)
                ]
    return tuple(failures)


def _unpack(submission: Submission, match: Match, battle: Battle, config: BattleConfig) -> Floats:
    """The recorded actions of a battle. Raises SubmissionError."""
    shape = decisions(battle, config), len(config.rosters[battle.side]), ACTION_DIM
    try:
        return unpack_actions(submission.proofs.get(battle_key(match, battle), b""), shape)
    except SubmissionError as error:
        raise SubmissionError(
            f"proof of battle {battle.number} of {match.scenario} against {match.second}: {error}"
        ) from None


def _check_behaviour(submission: Submission) -> None:
    """Raise SubmissionError if a submission was played with other rules or opponents than the installed ones."""
    installed = stamp()
    for key, what in (("engine_hash", "rules of the game"), ("opponents_hash", "opponents")):
        if submission.stamp[key] != installed[key]:
            raise SubmissionError(
                f"it was played with other {what}: {key} {submission.stamp[key][:12]} of echelon-env "
                f"{submission.stamp['package']}, installed is {installed[key][:12]} of {installed['package']}"
            )


def _ordered(matches: Sequence[Match], player: Player, suite: Suite) -> Iterator[Match]:
    """The matches in the suite's order. Raises SubmissionError for others than `make_submission` takes."""
    found = {(match.scenario, match.second): match for match in matches if match.first == player.name}
    played = [each.name for each in suite.scenarios if any(name == each.name for name, _ in found)]
    expected = [(scenario, opponent) for scenario in played for opponent in suite.opponents]
    if not expected or len(matches) != len(expected) or set(found) != set(expected):
        raise SubmissionError(
            f"expected the matches of {player.name!r} against {', '.join(suite.opponents)} in one or several scenarios "
            f"of {suite.name}, got {len(matches)} others"
        )
    for scenario, opponent in expected:
        match, seeds = found[scenario, opponent], suite.scenario(scenario).seeds
        suite.check_match(match)
        number = len(found[scenario, suite.opponents[0]].battles)
        pairs = [(seed, side) for seed in seeds[: number // 2] for side in SIDES]
        if not pairs or [(battle.seed, battle.side) for battle in match.battles] != pairs:
            raise SubmissionError(
                f"{scenario} against {opponent}: expected two battles on each of the first maps, on as many as against "
                f"the other opponents, got {len(match.battles)} battles"
            )
        yield match


def _batches(battles: Sequence[Battle]) -> Iterator[Sequence[Battle]]:
    return (battles[start : start + BATCH_SIZE] for start in range(0, len(battles), BATCH_SIZE))


def _record(
    player: Player, config: BattleConfig, match: Match, side: int, num_threads: int
) -> Iterator[tuple[BattleKey, Floats]]:
    """The actions of a player in the battles of a match from one side that it did not lose.

    A network's actions may depend a little on the other battles of its batch. So the battles are played in the batches
    of `play_match`.
    """
    for battles in _batches(match.battles[side::2]):
        if all(battle.outcome == LOSS for battle in battles):
            continue
        taken: list[Floats] = []
        found = _play(player, baseline(match.second), config, battles, side, num_threads, taken)
        actions = np.array(taken[1:])  # (T, B, M, A); the first are those before the start
        for place, (battle, replayed) in enumerate(zip(battles, found, strict=True)):
            if battle.outcome == LOSS:
                continue
            if not _is_same(battle, replayed):
                raise SubmissionError(
                    f"battle {battle.number} of {match.scenario} against {match.second} ends differently when it is "
                    f"played again: the actions of {player.name!r} must depend on the battle's seed and observations "
                    "only"
                )
            yield battle_key(match, battle), actions[: decisions(battle, config), place]


def _play(
    first: Player,
    second: Player,
    config: BattleConfig,
    battles: Sequence[Battle],
    side: int,
    num_threads: int,
    taken: list[Floats] | None = None,
) -> list[Battle]:
    """Play battles from one side again. Returns their results, whose numbers are not those of a match.

    Adds to `taken` the first player's actions (B, M, A) of each moment, as the engine played them.
    """
    seeds, blue = [battle.seed for battle in battles], len(config.blue)
    mechs = slice(blue, None) if side else slice(blue)
    with contextlib.closing(play(first, second, config, seeds, side=side, num_threads=num_threads)) as moments:
        for arena in moments:
            if taken is not None:
                taken.append(arena.engine.actions[:, mechs].copy())
    return battle_results(arena, 0, side)


def _is_same(battle: Battle, replayed: Battle) -> bool:
    return dataclasses.replace(replayed, number=battle.number) == battle


def _describe(battle: Battle, config: BattleConfig) -> str:
    outcome = _OUTCOMES.get(battle.outcome, "drawn")
    scores, survivors = (" to ".join(f"{value:.6g}" for value in pair) for pair in (battle.scores, battle.survivors))
    return f"{outcome} by {battle.reason} after {decisions(battle, config)} decisions, {scores} s, mechs {survivors}"
