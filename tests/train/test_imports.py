"""What importing the trainer's packages loads."""

import subprocess
import sys

CODE = "import sys, echelon_train.config; from echelon_train import load_run_config; assert 'torch' not in sys.modules"


def test_settings_do_not_import_torch():
    subprocess.run([sys.executable, "-c", CODE], check=True)
