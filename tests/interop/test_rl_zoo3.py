"""RL Zoo's commands on a registered id, as docs/guide/libraries.md and docs/reference/libraries.md have them."""

import subprocess
import sys

import pytest

ID = "echelon/DuelOpen-v1"
COMMON = ["--algo", "ppo", "--env", ID, "-f", "logs"]
HYPERPARAMETERS = (
    f"{ID}: {{policy: MlpPolicy, n_envs: 2, n_timesteps: 256, n_steps: 64, batch_size: 64, normalize: true}}"
)
AFTER_IMPORT = "import echelon_env, runpy; runpy.run_module({!r}, run_name='__main__', alter_sys=True)"


def run(folder, *arguments):
    result = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=600)
    return result.returncode, result.stdout + result.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a trained policy."""
    folder = tmp_path_factory.mktemp("zoo")
    (folder / "ppo.yml").write_text(HYPERPARAMETERS)
    package = ["--gym-packages", "echelon_env", "--conf-file", "ppo.yml", "--eval-freq", "-1"]
    code, text = run(folder, "-m", "rl_zoo3.train", *COMMON, *package)
    assert code == 0, text
    return folder


def test_enjoy_imports_the_package(trained):
    command = ["-m", "rl_zoo3.enjoy", *COMMON, "--gym-packages", "echelon_env", "-n", "50", "--no-render"]
    code, text = run(trained, *command)
    assert code == 0, text


def test_record_video_runs_after_an_import(trained):
    code, text = run(trained, "-m", "rl_zoo3.record_video", *COMMON, "-n", "20")
    assert code != 0 and f"KeyError: '{ID}'" in text  # it has no option for packages
    code, text = run(trained, "-c", AFTER_IMPORT.format("rl_zoo3.record_video"), *COMMON, "-n", "20")
    assert code == 0, text
    assert list(trained.glob("logs/ppo/*/videos/*.mp4"))


def test_the_form_with_a_module_is_refused(trained):
    code, text = run(trained, "-m", "rl_zoo3.train", "--algo", "ppo", "--env", f"echelon_env:{ID}", "-f", "logs")
    assert code != 0 and "not found in gym registry" in text
