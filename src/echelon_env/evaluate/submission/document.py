"""What a submission holds, the hash of its results, and the draw of the battles that are replayed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import PurePath
from typing import Any, NamedTuple

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, check_fields, check_integer, quantity
from echelon_env.evaluate.matches import LOSS, Battle, Identity, Match
from echelon_env.evaluate.players import Player
from echelon_env.evaluate.stamps import document_hash
from echelon_env.evaluate.suite import Suite
from echelon_env.evaluate.tables import shorten

MAX_NAME, MAX_KEY, MAX_TEXT = 60, 60, 1000
"""Most characters of a method's name, of the name of an entry, and of another text."""

_BLANK = "\u115f\u1160\u3164\uffa0"  # letters that are shown as spaces

_NONCE = re.compile("[!-~]{1,64}")  # printable ASCII without spaces, so that it can be copied

_URL = re.compile(r"https?://[^\s()<>\[\]\"'`\\|]{1,300}")


class SubmissionError(ConfigError):
    """A submission that is not valid, or that cannot be made or verified."""


class BattleKey(NamedTuple):
    """A battle of a submission."""

    scenario: str
    opponent: str
    number: int  # 2 * map + side, see `Battle`


@dataclass(frozen=True)
class Draw:
    """A random choice of the battles that are replayed. Raises ConfigError for an invalid number or nonce."""

    battles: int
    """Number of battles of each scenario, all if fewer are proved."""
    nonce: str
    """What the submitter could not know: made or published after the submission."""

    def __post_init__(self) -> None:
        check_integer("battles", self.battles)
        if not isinstance(self.nonce, str) or not _NONCE.fullmatch(self.nonce):
            raise ConfigError(
                f"nonce: expected 1 to 64 letters, digits and signs of ASCII without spaces, got {self.nonce!r:.80}"
            )


@dataclass(frozen=True)
class Method:
    """What the submitter says about a method. Nothing of it can be checked.

    Raises SubmissionError for a text that is too long or not printable, a URL that is none, or a number out of range.
    """

    name: str
    authors: str = ""
    url: str = ""
    decisions: int = quantity(0, "decisions", 0, 1e15)  # of the training, as `echelon train` counts; 0: not stated
    cpu_minutes: float = quantity(0.0, "min", 0, 1e9)  # of the training, over all cores; 0: not stated
    hardware: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        try:
            check_fields(self, "method.")
        except ConfigError as error:
            raise SubmissionError(str(error), *error.keys) from None
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, str):
                check_text(f"method.{each.name}", value, MAX_NAME if each.name == "name" else MAX_TEXT)
        if not any(letter.isalnum() and letter not in _BLANK for letter in self.name):
            raise SubmissionError(f"method.name: expected a name with a letter or digit, got {self.name!a:.80}")
        if self.url and not _URL.fullmatch(self.url):
            raise SubmissionError(
                f"method.url: expected an address such as https://example.org/x, got {self.url!r:.80}"
            )


def default_method(player: Player, name: str | None = None) -> Method:
    """What is known of a player's method: its name and decisions.

    Without a name it is the last part of the player's, which may be a path. Raises SubmissionError for a name that is
    not valid.
    """
    if name is None:
        name = shorten(PurePath(player.name).name or player.name, MAX_NAME)
    steps = player.identity.get("steps", 0)
    return Method(name, decisions=steps if isinstance(steps, int) else 0)


@dataclass(frozen=True)
class Submission:
    """The results of a method on a suite or a part of it, with proofs."""

    method: Method
    action_mode: str
    identity: Identity  # of the player, see `Player.identity`
    suite: Suite
    stamp: Mapping[str, str]
    matches: tuple[Match, ...]
    """Scenario by scenario in the suite's order, and in each all of the suite's opponents in its order, on the same
    maps. The first player of each is the method."""
    proofs: Mapping[BattleKey, bytes] = field(default_factory=dict)
    """Packed actions of the method's mechs in each of `proved_battles`, see `pack_actions`."""

    @cached_property
    def results_hash(self) -> str:
        """SHA-256 of the player, the suite, the hashes of engine and opponents, and the results of all battles."""
        behaviour = {key: self.stamp[key] for key in ("engine_hash", "opponents_hash")}
        player = {"action_mode": self.action_mode, "identity": dict(self.identity)}
        return document_hash({
            "player": player, "suite": self.suite.hash, **behaviour, "results": results_document(self)
        })  # fmt: skip

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the scenarios that were played on all of the suite's maps."""
        numbers = {match.scenario: len(match.battles) for match in self.matches}
        return tuple(each.name for each in self.suite.scenarios if numbers.get(each.name) == 2 * len(each.seeds))


def proved_battles(submission: Submission) -> tuple[BattleKey, ...]:
    """The battles that are proved: all that the method did not lose, as a lost battle gives no points."""
    return tuple(
        battle_key(match, battle) for match in submission.matches for battle in match.battles if battle.outcome != LOSS
    )


def drawn_battles(submission: Submission, draw: Draw | None = None) -> tuple[BattleKey, ...]:
    """The battles that are replayed: all of `proved_battles`, or in each scenario the number of the draw.

    These are the first by the SHA-256 of the nonce, the results' hash and the battle.
    """
    proved = proved_battles(submission)
    if draw is None:
        return proved
    order: dict[str, list[tuple[bytes, BattleKey]]] = {}
    for key in proved:
        text = "\n".join([draw.nonce, submission.results_hash, *map(str, key)])
        order.setdefault(key.scenario, []).append((hashlib.sha256(text.encode()).digest(), key))
    return tuple(key for ordered in order.values() for _, key in sorted(ordered)[: draw.battles])


def battle_key(match: Match, battle: Battle) -> BattleKey:
    """The key of a battle of a match."""
    return BattleKey(match.scenario, match.second, battle.number)


def results_document(submission: Submission) -> dict[str, Any]:
    """The results of all battles as plain data: scenario -> opponent -> column -> values of the battles in order."""
    document: dict[str, Any] = {}
    for match, config in with_configs(submission):
        battles = match.battles
        document.setdefault(match.scenario, {})[match.second] = {
            "outcome": [battle.outcome for battle in battles],
            "reason": [battle.reason for battle in battles],
            "decisions": [decisions(battle, config) for battle in battles],
            "scores": [list(battle.scores) for battle in battles],
            "survivors": [list(battle.survivors) for battle in battles],
        }
    return document


def with_configs(submission: Submission) -> Iterator[tuple[Match, BattleConfig]]:
    """Each match with its configuration. Raises SuiteError if the installed scenario differs from the suite's."""
    configs = {name: submission.suite.config(name) for name in {match.scenario for match in submission.matches}}
    return ((match, configs[match.scenario]) for match in submission.matches)


def decisions(battle: Battle, config: BattleConfig) -> int:
    """Number of decisions of a battle."""
    return round(battle.seconds / config.decision_seconds)


def check_text(name: str, value: Any, most: int = MAX_TEXT) -> str:
    """Return a text. Raises SubmissionError unless it is printable and not longer than `most` characters."""
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise SubmissionError(f"{name}: expected a printable text of at most {most} characters, got {value!r:.80}")
    return value


def check_player(action_mode: str, identity: Identity) -> tuple[str, dict[str, str | int]]:
    """Return a player's action mode and identity. Raises SubmissionError for those that a submission cannot hold."""
    check_text("player.action_mode", action_mode, 20)
    if len(identity) > 16:
        raise SubmissionError(f"identity: expected at most 16 entries, got {len(identity)}")
    for key, value in identity.items():
        check_text("identity", key, MAX_KEY)
        if type(value) is not int:
            check_text(f"identity.{key}", value, 300)
        elif not 0 <= value < 2**63:
            raise SubmissionError(f"identity.{key}: expected an integer from 0 to 2**63 - 1")
    return action_mode, dict(identity)
