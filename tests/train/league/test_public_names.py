import subprocess
import sys

from echelon_train import league


def test_public_names_are_found_and_nothing_else():
    assert all(hasattr(league, name) for name in league.__all__)
    assert not hasattr(league, "no_such_name")
    assert sorted(league.__all__) == league.__all__ == sorted(league._MODULES)


def test_the_package_imports_torch_only_when_a_name_needs_it():
    code = "import sys, echelon_train.league as league; league.Rating(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
