"""Making submissions from played matches, and verifying them: drawn battles are recorded and replayed."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Sequence

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate.matches import (
    BATCH_SIZE,
    LOSS,
    SIDES,
    WIN,
    Battle,
    Match,
    battle_results,
    play,
)
from echelon_env.evaluate.players import BattleNoise, Player, baseline
from echelon_env.evaluate.stamps import stamp
from echelon_env.evaluate.submission.actions import (
    RECORDED,
    Floats,
    Recorder,
    pack_actions,
    playback,
    unpack_actions,
)
from echelon_env.evaluate.submission.document import (
    BattleKey,
    Method,
    Submission,
    SubmissionError,
    check_player,
    decisions,
    default_method,
    drawn_battles,
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
    """Make a submission from a player's matches on a suite. Plays the drawn battles again, and records them.

    Parameters
    ----------
    matches
        Matches of the player, as the first, against all opponents of the suite in one or several of its scenarios. In
        each scenario they are on all maps, or on the same number of its first maps.
    player
        The player.
    suite
        The suite.
    method
        What is said about the method; by default its name is the last part of the player's, which may be a path.
    num_threads
        Number of threads that share the battles and the players' mechs, at least 1.

    Raises
    ------
    SubmissionError
        For other matches, and for a player whose battle ends differently when it is played again.
    SuiteError
        For a match that was not played on the suite's maps.
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
    proofs: dict[BattleKey, bytes] = {}
    drawn = drawn_battles(submission)
    for match, config in with_configs(submission):
        opponent = baseline(match.second)
        for side in SIDES:
            for key, actions in _record(
                player, opponent, config, match, _chosen(match, drawn, side), side, num_threads
            ):
                proofs[key] = pack_actions(actions)
    return dataclasses.replace(submission, proofs={key: proofs[key] for key in drawn})


def verify_submission(submission: Submission, *, num_threads: int = 1) -> tuple[str, ...]:
    """Replay the proved battles: the recorded actions against the suite's opponents, on the suite's maps.

    Returns a sentence for each battle that has not the stated outcome, reason, number of decisions, scores and
    survivors; none if the submission is verified. The submission is one of `make_submission` or `read_submission`,
    which checks that the right battles are proved.

    Raises SubmissionError if the submission was played with other rules or opponents than the installed ones, and
    SuiteError if the suite's scenarios differ from the installed ones.
    """
    _check_behaviour(submission)
    failures = []
    for match, config in with_configs(submission):
        for side in SIDES:
            battles = _chosen(match, submission.proofs, side)
            if not battles:
                continue
            recording = unpack_proofs(submission, match, side, config)
            found = _play(playback(recording), baseline(match.second), config, [*recording], side, num_threads)
            for battle, replayed in zip(battles, found, strict=True):
                if not _is_same(battle, replayed):
                    failures.append(
                        f"battle {battle.number} of {match.scenario} against {match.second}: stated "
                        f"{_describe(battle, config)}, replayed {_describe(replayed, config)}"
                    )
    return tuple(failures)


def unpack_proofs(submission: Submission, match: Match, side: int, config: BattleConfig) -> dict[int, Floats]:
    """The recorded actions in the proved battles of a match from one side, by seed. Raises SubmissionError."""
    recording = {}
    for battle in _chosen(match, submission.proofs, side):
        shape = decisions(battle, config), len(config.rosters[side]), ACTION_DIM
        try:
            recording[battle.seed] = unpack_actions(submission.proofs[_key(match, battle)], shape)
        except SubmissionError as error:
            raise SubmissionError(
                f"proof of battle {battle.number} of {match.scenario} against {match.second}: {error}"
            ) from None
    return recording


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


def _key(match: Match, battle: Battle) -> BattleKey:
    return BattleKey(match.scenario, match.second, battle.number)


def _chosen(match: Match, keys: Collection[BattleKey], side: int) -> list[Battle]:
    """The battles of a match from one side that have one of the keys."""
    return [battle for battle in match.battles if battle.side == side and _key(match, battle) in keys]


def _record(
    player: Player,
    opponent: Player,
    config: BattleConfig,
    match: Match,
    battles: Sequence[Battle],
    side: int,
    num_threads: int,
) -> Iterator[tuple[BattleKey, Floats]]:
    """The actions of a player in battles of a match from one side.

    A network's actions may depend a little on the other battles of its batch. So a battle that ends differently is
    played once more in the batch that it was in, as `play_match` plays it by default.
    """
    left = {battle.seed: battle for battle in battles}
    all_seeds = [battle.seed for battle in match.battles[::2]]
    batches = [all_seeds[start : start + BATCH_SIZE] for start in range(0, len(all_seeds), BATCH_SIZE)]
    for seeds in [[*left], *batches]:
        if not left.keys() & set(seeds):
            continue
        recorders: list[Recorder] = []

        def make(config: BattleConfig, noise: BattleNoise, into: list[Recorder] = recorders) -> Recorder:
            into.append(Recorder(noise, player.make(config, noise)))
            return into[0]

        found = _play(dataclasses.replace(player, name=RECORDED, make=make), opponent, config, seeds, side, num_threads)
        for place, replayed in enumerate(found):
            battle = left.get(replayed.seed)
            if battle is not None and _is_same(battle, replayed):
                del left[replayed.seed]
                yield _key(match, battle), recorders[0].actions(place, decisions(battle, config))
    if left:
        number = min(battle.number for battle in left.values())
        raise SubmissionError(
            f"battle {number} of {match.scenario} against {match.second} ends differently when it is played again: the "
            f"actions of {player.name!r} must depend on the battle's seed and observations only"
        )


def _play(
    first: Player, second: Player, config: BattleConfig, seeds: Sequence[int], side: int, num_threads: int
) -> list[Battle]:
    """The results of battles from one side; their numbers are not those of a match."""
    with contextlib.closing(play(first, second, config, seeds, side=side, num_threads=num_threads)) as moments:
        for arena in moments:
            if arena.battle_over.all():
                return battle_results(arena, 0, side)
    raise AssertionError("battles end")


def _is_same(battle: Battle, replayed: Battle) -> bool:
    return dataclasses.replace(replayed, number=battle.number) == battle


def _describe(battle: Battle, config: BattleConfig) -> str:
    outcome = _OUTCOMES.get(battle.outcome, "drawn")
    scores, survivors = (" to ".join(f"{value:.6g}" for value in pair) for pair in (battle.scores, battle.survivors))
    return f"{outcome} by {battle.reason} after {decisions(battle, config)} decisions, {scores} s, mechs {survivors}"
