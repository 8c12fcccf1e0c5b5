"""The interop sessions miss nothing: every file has one, and what is skipped or cannot run has failed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
INTEROP = ROOT / "tests" / "interop"


def run_nox(folder, *arguments):
    return subprocess.run([sys.executable, "-m", "nox", *arguments], cwd=folder, capture_output=True, text=True)


def test_every_file_of_interop_tests_has_a_session():
    noxfile = (ROOT / "noxfile.py").read_text()
    assert ".skip(" not in noxfile  # nox takes that for a success
    files = [path.name for path in INTEROP.glob("test_*.py")]
    assert files
    for name in files:
        assert f'"{name}"' in noxfile


def test_a_session_whose_interpreter_is_missing_fails_by_name(tmp_path):
    session = '\n\n@nox.session(python="3.1")\ndef ghost(session):\n    """Cannot run."""\n'
    (tmp_path / "noxfile.py").write_text((ROOT / "noxfile.py").read_text() + session)
    assert "ghost" in run_nox(tmp_path, "--list").stdout
    result = run_nox(tmp_path, "--session", "ghost")
    assert result.returncode != 0
    assert "ghost" in result.stderr and "failed" in result.stderr


def test_skipped_interop_tests_fail_by_name(tmp_path):
    shutil.copy(INTEROP / "conftest.py", tmp_path)
    skips = {
        "test_one.py": "import pytest\n\n\ndef test_planted():\n    pytest.skip('no library')\n",
        "test_all.py": "import pytest\n\npytest.importorskip('no_such_library')\n\n\ndef test_planted():\n    pass\n",
    }
    for name, code in skips.items():
        (tmp_path / name).write_text(code)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
        *skips,
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode != 0
    for name in skips:
        assert re.search(f"{name}.* was skipped, which counts as missing", result.stdout)


def test_the_default_run_leaves_interop_tests_alone():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", INTEROP]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    collected = re.findall(r"^tests/interop/\S+", result.stdout, re.MULTILINE)
    assert collected and all(name.startswith("tests/interop/adapters/") for name in collected)
