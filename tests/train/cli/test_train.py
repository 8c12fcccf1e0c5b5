import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from echelon_env.cli import main
from echelon_train.cli.train import option
from echelon_train.config.files import load_run_config, run_config_descriptions, settings
from echelon_train.runs.run import TrainResult


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The arguments of training, which does not run; in an empty working directory."""
    asked = []
    fake = ModuleType("echelon_train.runs.training")

    def answer(out, interrupted, done):
        return TrainResult(Path(out, "checkpoints", "7"), 1234, interrupted, done)

    def train(config, out):
        asked.append(SimpleNamespace(config=config, out=out))
        out.mkdir(parents=True)
        return answer(out, config.seed == 130, config.seed != 130)

    def resume(run, **changes):
        asked.append(SimpleNamespace(run=run, changes=changes))
        return answer(run, False, True)

    fake.train, fake.resume = train, resume
    monkeypatch.setitem(sys.modules, "echelon_train.runs.training", fake)
    monkeypatch.chdir(tmp_path)
    return asked


def fail(arguments, capsys):
    """The one line that a bad command line prints."""
    try:
        code = main(["train", *arguments])
    except SystemExit as error:
        code = error.code
    captured = capsys.readouterr()
    assert (code, captured.out, captured.err.count("\n")) == (2, "", 1)
    return captured.err


def test_without_arguments_it_is_the_quickstart_in_the_next_free_folder(runs, capsys):
    assert main(["train"]) == main(["train"]) == 0
    assert [run.config for run in runs] == [load_run_config("quickstart")] * 2
    assert [run.out for run in runs] == [Path("runs/quickstart"), Path("runs/quickstart-2")]
    printed = capsys.readouterr().out
    assert "Trained on 1,234 decisions.\nCheckpoint: runs/quickstart/checkpoints/7\n" in printed
    assert "--resume" not in printed


def test_an_interrupted_run_says_how_to_resume_it(runs, capsys):
    assert main(["train", "--seed", "130"]) == 130
    assert "Continue:   echelon train --resume runs/quickstart\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (["skirmish"], "runs/skirmish"),
        (["configs/mine.toml"], "runs/mine"),
        (["--scenario", "skirmish"], "runs/skirmish"),
        (["--curriculum", "duel-open", "duel"], "runs/curriculum"),
        (["skirmish", "--scenario", "duel"], "runs/skirmish"),
        (["--set", "scenario=duel"], "runs/duel"),
        (["--scenario", "trio", "--scenario", "duel"], "runs/trio-duel"),
        (["skirmish", "--out", "there"], "there"),
    ],
)
def test_the_folder_is_named_after_the_request(runs, arguments, folder):
    Path("configs").mkdir()
    Path("configs", "mine.toml").write_text('scenario = "duel"\n')
    assert main(["train", *arguments]) == 0
    assert runs[0].out == Path(folder)


def test_options_override_the_run_config(runs):
    arguments = "skirmish --opponent trivial --steps 4_000_000 --battles 64 --maps 20 --regenerate 2 --threads 2"
    arguments += " --device cpu --eval-every 0 --checkpoint-every 9 --seed 3 --ppo.learning-rate linear:1e-3:0"
    arguments += " --network.communicate true --set battle.rewards.death=-5 --set ppo.n_epochs=4"
    arguments += " --max-minutes 2 --games 30"
    assert main(["train", *arguments.split()]) == 0
    (run,) = runs
    expected = {
        "opponent": "trivial",
        "steps": "4_000_000",
        "battles": "64",
        "maps": "20",
        "regenerate": "2",
        "threads": "2",
        "device": "cpu",
        "eval_every": "0",
        "checkpoint_every": "9",
        "seed": "3",
        "ppo.learning_rate": "linear:1e-3:0",
        "network.communicate": "true",
        "battle.rewards.death": "-5",
        "ppo.n_epochs": "4",
        "max_minutes": "2",
        "max_battles": "30",
    }
    assert run.config == load_run_config("skirmish", expected)


def test_a_run_is_resumed(runs):
    assert main(["train", "--resume", "runs/x", "--steps", "9_000", "--max-minutes", "1", "--games", "50"]) == 0
    elsewhere = ["--device", "cpu", "--threads", "2", "--torch-threads", "3", "--maps", "there", "--league", "here"]
    assert main(["train", "--resume", "runs/x", *elsewhere]) == 0
    first, second = runs
    assert first.changes == {"steps": 9000, "max_minutes": 1, "max_battles": 50}
    assert first.run == Path("runs/x")
    assert second.changes == {"device": "cpu", "threads": 2, "torch_threads": 3, "maps": "there", "league.path": "here"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quikstart"], "did you mean 'quickstart'"),
        (["absent.toml"], "absent.toml: No such file"),
        (["--steps", "0"], "with steps=0"),
        (["--opponent", "novic"], "did you mean 'novice'"),
        (["--scenario", "duel", "--curriculum", "duel"], "not allowed with argument"),
        (["--set", "ppo.n_epochs"], "--set: expected KEY=VALUE, got 'ppo.n_epochs'"),
        (["--set", "steps=5", "--steps", "6"], "--set: steps: an option of its own sets it, too"),
        (["league"], "league.path: expected the folder of a league, see --league"),
        (["--role", "main"], "league.path: expected the folder of a league"),
        (["--step", "3"], "--step"),
        (["--ppo.critic-lr-scale", "3"], "'train' takes no '--ppo.critic-lr-scale': it no longer exists (see"),
        (["--network.auxiliary=true"], "'--network.auxiliary': it no longer exists"),
        (
            ["--resume", "runs/x", "--ppo.n-epochs", "3", "--seed", "1"],
            "--torch-threads, --compile, --maps, --league, but not seed, ppo.n_epochs",
        ),
        (["skirmish", "--resume", "runs/x", "--out", "y"], "but not config, out"),
    ],
)
def test_bad_command_lines_say_why_in_one_line(runs, capsys, arguments, message):
    assert message in fail(arguments, capsys)
    assert runs == []
    assert list(Path().iterdir()) == []


def test_the_help_lists_every_setting(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["train", "--help-all"])
    text = capsys.readouterr().out
    for setting in settings():
        flag = re.escape(f"  {option(setting.key)} {setting.metavar}")
        assert re.search(rf"{flag}\s", text), setting.key
    words = " ".join(text.split())
    assert all(f"{name} {description}" in words for name, description in run_config_descriptions().items())
    with pytest.raises(SystemExit):
        main(["train", "-h"])
    short = capsys.readouterr().out.splitlines()
    assert len(short) < len(text.splitlines())
    assert [line for line in short if "--steps N" in line and "850_000" in line]
    assert "--resume accepts new values of --steps, --max-minutes, --max-cpu-minutes, --games, --device" in words
