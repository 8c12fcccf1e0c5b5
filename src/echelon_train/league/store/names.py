"""Names for members that a person can remember, drawn from the hash of their weights."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Container

from echelon_env.evaluate import BASELINES
from echelon_train.checkpoints.players import UNTRAINED
from echelon_train.league.errors import LeagueError

MOST_LETTERS = 32
"""Of a name, so that tables fit on a terminal."""

_PATTERN = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{MOST_LETTERS - 1}}}")
_DRAWS = 16  # before a number is put behind a name

_ADJECTIVES = (
    "able agile amber ancient arctic bold brave brisk bronze calm candid clever cobalt copper crimson daring deft "
    "eager early fabled fierce fleet frosty gentle gilded golden grand hardy hasty hidden honest humble iron ivory "
    "jade jolly keen lively lone loyal lucky merry mighty misty noble patient placid polar proud quick quiet rapid "
    "ruby rugged rustic sage sharp silent silver sleek sly solemn steady stern stout sturdy subtle sunny swift "
    "tidy tireless vivid wary wild wise witty zealous"
)
_ANIMALS = (
    "adder albatross antelope auk badger bat bear beaver bison boar buffalo buzzard camel caracal cheetah cobra condor "
    "cormorant cougar coyote crane crow dingo dolphin eagle egret elk ermine falcon ferret finch fox gannet gazelle "
    "gecko gibbon goshawk grouse gull hare harrier hawk hedgehog heron hornet hyena ibex ibis jackal jaguar kestrel "
    "kite lark leopard lion lynx magpie mamba marlin marmot marten merlin mole mongoose moose newt ocelot orca osprey "
    "otter owl panther pelican perch petrel pike plover puffin puma python quail raven rook salmon seal shark shrew "
    "shrike skua sparrow stag stoat stork swan swift tapir tern tiger toad trout viper vole vulture walrus weasel "
    "whale wolf wombat wren"
)
ADJECTIVES = tuple(_ADJECTIVES.split())
ANIMALS = tuple(_ANIMALS.split())


def memorable_name(weights_sha256: str, taken: Container[str]) -> str:
    """An adjective and an animal that follow from a hash; the next ones, if that name is `taken`, or with a number."""
    name = ""
    for draw in range(_DRAWS):
        number = int.from_bytes(hashlib.sha256(f"{weights_sha256}{draw}".encode()).digest())
        number, adjective = divmod(number, len(ADJECTIVES))
        name = f"{ADJECTIVES[adjective]}-{ANIMALS[number % len(ANIMALS)]}"
        if name not in taken:
            return name
    return next(numbered for n in itertools.count(2) if (numbered := f"{name}-{n}") not in taken)


def check_name(name: str) -> str:
    """The name of a member that is no scripted one. Raises LeagueError if it cannot be."""
    if not _PATTERN.fullmatch(name):
        raise LeagueError(
            f"name {name!r}: expected 1 to {MOST_LETTERS} lower-case letters, digits, '-', '_' or '.', "
            "the first a letter or a digit"
        )
    if name in (*BASELINES, UNTRAINED):
        raise LeagueError(f"name {name!r}: is the name of a player that comes with the package")
    return name
