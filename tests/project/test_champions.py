"""The shipped champions and their cards."""

import hashlib
import re

import pytest

from echelon_env import make_config
from echelon_env.champions import CHAMPIONS, champion_folder
from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.checkpoints.checkpoint import load_checkpoint
from project.test_docs import ROOT


@pytest.mark.parametrize("name", CHAMPIONS)
def test_a_champion_loads_and_its_card_has_its_hash(name):
    folder = champion_folder(name)
    checkpoint = load_checkpoint(folder)
    sha256 = hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()
    assert sha256 in (ROOT / "docs" / "results" / "champions.md").read_text()
    assert checkpoint.battle.blue == make_config(name).blue


def test_the_replays_of_the_cards_exist():
    page = (ROOT / "docs" / "results" / "champions.md").read_text()
    replays = re.findall(r"docs/gallery/[\w-]+\.replay", page)
    assert len(set(replays)) >= len(CHAMPIONS)
    assert all((ROOT / path).is_file() for path in replays)
