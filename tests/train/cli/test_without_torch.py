import subprocess
import sys

CODE = """
import importlib.metadata, sys
sys.modules["torch"] = None
for point in importlib.metadata.entry_points(group="echelon.commands"):
    if point.dist.name == "echelon-env":
        point.load()
"""


def test_every_command_is_listed_where_torch_is_missing():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
