"""Imports of the trainer's packages."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "code",
    [
        "import echelon_train.config; from echelon_train import load_run_config",
        "import echelon_train.league; echelon_train.league.Rating()",
        "from echelon_env.champions import champion_player; champion_player('duel')",
    ],
)
def test_settings_ratings_and_players_do_not_import_torch(code, pytestconfig):
    code = f"{code}; import sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=pytestconfig.rootpath)
