"""Imports of the trainer's packages."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "code",
    [
        "import echelon_train.config; from echelon_train import load_run_config",
        "import echelon_train.league; echelon_train.league.Rating()",
    ],
)
def test_settings_and_ratings_do_not_import_torch(code):
    subprocess.run([sys.executable, "-c", f"{code}; import sys; assert 'torch' not in sys.modules"], check=True)
