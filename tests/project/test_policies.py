"""The trained policies that the repository keeps."""

import hashlib

import pytest

from echelon_env.config.scenario import make_config
from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.checkpoints.checkpoint import load_checkpoint
from project.test_docs import ROOT

POLICIES = sorted(path.parent for path in (ROOT / "policies").glob("*/checkpoint.json"))


@pytest.mark.parametrize("folder", POLICIES, ids=lambda folder: folder.name)
def test_a_kept_policy_loads_and_its_card_has_its_hash(folder):
    checkpoint = load_checkpoint(folder)
    sha256 = hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()
    assert sha256 in (ROOT / "policies" / "README.md").read_text()
    assert checkpoint.battle.blue == make_config(folder.name.removesuffix("-wide")).blue
