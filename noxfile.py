"""Echelon beside other people's libraries, each in a virtual environment of its own: run `nox`.

As in the Makefile, pyproject.toml says what an environment has of Echelon's (its extras), and constraints.txt the
versions; a session adds the library that it is about.

What cannot run has failed: a missing interpreter, a failed installation and a skipped test are errors, and the list
that nox prints at the end names the session.
"""

import tempfile
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.error_on_missing_interpreters = True
nox.options.default_venv_backend = "venv"

ROOT = Path(__file__).parent
TESTS = Path("tests/interop")


def install(session: nox.Session, *packages: str, free: tuple[str, ...] = ()) -> None:
    """Install pytest and packages in the versions of constraints.txt, which do not bind the `free` ones."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constraints = Path(session.create_tmp()).resolve() / "constraints.txt"
    constraints.write_text("\n".join(line for line in lines if line.partition("==")[0] not in free))
    session.install("-c", str(constraints), "pytest", *packages)


def run_tests(session: nox.Session, name: str, *options: str, **environment: str) -> None:
    """Run one file of tests/interop; a test that hangs has failed. Arguments after ``--`` go to pytest."""
    hanging = ["-o", "faulthandler_timeout=600", "-o", "faulthandler_exit_on_timeout=true"]
    arguments = ["-q", "--durations=5", *hanging, *options, str(TESTS / name), *session.posargs]
    session.run("pytest", *arguments, env=environment)


@nox.session
def sb3(session: nox.Session) -> None:
    """Stable-Baselines3 and sb3-contrib, on our own environments and through SuperSuit."""
    install(session, ".[train,interop]")
    run_tests(session, "test_sb3.py")


@nox.session
def rl_zoo3(session: nox.Session) -> None:
    """RL Zoo's commands: train, enjoy and record_video; enjoy imports `requests`, which it does not depend on."""
    install(session, ".[train]", "rl_zoo3", "requests", "moviepy")
    run_tests(session, "test_rl_zoo3.py")


@nox.session
def torchrl(session: nox.Session) -> None:
    """TorchRL: `TorchRLEnv`, GymEnv, and why there is `TorchRLEnv` beside PettingZooWrapper."""
    install(session, ".", "torch", "torchrl")
    run_tests(session, "test_torchrl.py", "-W", "ignore::DeprecationWarning")  # TorchRL's, of its own modules


@nox.session
def benchmarl(session: nox.Session) -> None:
    """BenchMARL: MAPPO, IPPO and QMIX on `echelon_env.interop.benchmarl.EchelonTask`."""
    install(session, ".", "torch", "benchmarl")
    run_tests(session, "test_benchmarl.py", "-W", "ignore")  # BenchMARL and TorchRL warn of each other


@nox.session
def tianshou(session: nox.Session) -> None:
    """Tianshou's high-level experiments; they need its extra `eval`."""
    install(session, ".", "torch", "tianshou[eval]")
    run_tests(session, "test_tianshou.py", "-W", "ignore")  # Tianshou's own, of pandas and others


@nox.session
def agilerl(session: nox.Session) -> None:
    """AgileRL's algorithms, in the version of constraints.txt."""
    install(session, ".", "torch", "agilerl")
    run_tests(session, "test_agilerl.py", "-W", "ignore")


@nox.session
def rllib(session: nox.Session) -> None:
    """RLlib's ParallelPettingZooEnv; ray pins a Gymnasium of its own."""
    install(session, ".", "torch", "ray[rllib]", free=("gymnasium",))
    # ray refuses a folder within the virtual environment, where nox puts temporary files, and then hangs
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        run_tests(session, "test_rllib.py", RAY_TMPDIR=folder)


@nox.session(name="gymnasium-min")
def gymnasium_min(session: nox.Session) -> None:
    """The oldest version of every dependency that pyproject.toml admits."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    session.install("pytest", ".[render]", *(requirement.replace(">=", "==") for requirement in declared))
    run_tests(session, "test_versions.py")


@nox.session
def latest(session: nox.Session) -> None:
    """The newest version of every dependency."""
    session.install("--upgrade", "--upgrade-strategy", "eager", "pytest", ".[render]")
    run_tests(session, "test_versions.py")


@nox.session
def notebook(session: nox.Session) -> None:
    """The notebook of the first steps, where there is nothing but the package and Jupyter's kernel."""
    install(session, ".", "nbclient", "nbformat", "ipykernel")
    session.run("pytest", "-q", "-m", "", "tests/project/test_notebooks.py", "-k", "first_steps")
