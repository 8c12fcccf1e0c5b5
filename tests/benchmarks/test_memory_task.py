from benchmarks import memory_task


def test_runs_are_kept_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory_task, "KEPT", tmp_path / "memory_task.json")
    monkeypatch.setattr(memory_task, "BUDGET", 768)  # a rollout
    monkeypatch.setattr(memory_task, "SEEDS", (1,))
    assert memory_task.main([]) == 0
    found = memory_task.kept()
    for name in memory_task.POLICIES:
        (one,) = found[name]
        assert (one["seed"], one["steps"]) == (1, 768)
        assert one["right"] == (1.0 + one["reward"]) / 2.0
        ((steps, share),) = one["curve"]
        assert steps == 768 and 0.0 < share < 1.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| recurrent | 1 | 768 | ") and lines[3].startswith("| without a memory | 1 | 768 | ")
    memory_task.draw(found, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_the_runs_kept_are_those_of_the_page():
    found = memory_task.kept()
    for name in memory_task.POLICIES:
        assert [one["seed"] for one in found[name]] == list(memory_task.SEEDS)
        assert {one["steps"] for one in found[name]} == {memory_task.BUDGET}
    assert all(one["right"] > 0.95 for one in found["recurrent"])
    assert all(one["right"] < 0.65 for one in found["without a memory"])
