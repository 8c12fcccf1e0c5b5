import pytest

from echelon_train import __main__ as main_module


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["skirmish", "--seed", "1"], ["train", "skirmish", "--seed", "1"]),
        (["train", "skirmish"], ["train", "skirmish"]),
        (["demo", "--help"], ["demo", "--help"]),
        (["imitate", "duel"], ["imitate", "duel"]),
        (["--resume", "runs/x"], ["train", "--resume", "runs/x"]),
        ([], ["train"]),
    ],
)
def test_the_command_train_may_be_omitted(given, expected, monkeypatch):
    seen = []
    monkeypatch.setattr(main_module, "command_line", lambda arguments: seen.append(arguments) or 7)
    assert main_module.main(given) == 7
    assert seen == [expected]
