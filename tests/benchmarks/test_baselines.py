"""The table of baselines: its runs, its rows and its page."""

import importlib
from dataclasses import replace

import pytest
from benchmarks.baselines import __main__ as command
from benchmarks.baselines import cross, judge, ours, page, plan, results, runs
from benchmarks.baselines.plan import ABLATIONS, METHODS, Budget, Run

from echelon_env.evaluate import freeze_suite

SCENARIO = "duel-open"
KEPT = ("decisions", "cpu_minutes", "outcomes", "suite_hash", "engine_hash", "opponents_hash")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A plan of one scenario and a suite of two maps, for runs of three seconds, which the first import would take."""
    importlib.import_module("torch._dynamo")
    suite = freeze_suite("tiny", [SCENARIO], ["trivial"], 2)
    monkeypatch.setattr(judge, "load_suite", lambda name: {"tiny": suite}[name])
    monkeypatch.setattr(plan, "SUITE", "tiny")
    monkeypatch.setattr(plan, "BUDGETS", {SCENARIO: Budget(0.05, (1,), 32)})
    monkeypatch.setattr(plan, "ABLATION", Budget(0.05, (1,), 32))
    for module in (command, runs):
        monkeypatch.setattr(module, "BUDGETS", plan.BUDGETS)
    for methods in (METHODS, ABLATIONS):
        for name, method in methods.items():
            monkeypatch.setitem(methods, name, replace(method, scenarios=(SCENARIO,)))
    monkeypatch.setitem(ours._IMITATED, SCENARIO, 1500)
    monkeypatch.setitem(runs.one_file.STEPS_A_MINUTE, SCENARIO, 400_000)
    return tmp_path


def make(small, method: str, *options: str) -> list[dict]:
    arguments = f"--scenario {SCENARIO} --method {method} --minutes 0.05 --out {small}/runs --rows {small}/rows.json"
    assert command.main([*arguments.split(), *options]) == 0
    return results.read(small / "rows.json")


@pytest.mark.long
@pytest.mark.parametrize("method", [*METHODS, "critic-ippo"])
def test_a_row_is_made_and_not_trained_twice(method, small):
    (row,) = make(small, method)
    assert (row["scenario"], row["method"], row["seed"]) == (SCENARIO, method, 1)
    assert row["decisions"] > 0
    assert 0 < row["cpu_minutes"] < 1
    assert {len(outcomes) for outcomes in row["outcomes"][SCENARIO].values()} == {4}
    assert Run(SCENARIO, method, 1) not in command.missing(small / "rows.json")
    again = make(small, method, "--replace")  # the training is kept, the battles are played again
    assert {name: again[0][name] for name in KEPT} == {name: row[name] for name in KEPT}


def test_references_are_rows_and_the_plan_says_what_is_missing(small, capsys):
    (row,) = make(small, "idle")
    assert row["seed"] is None
    assert set(row["outcomes"][SCENARIO]) == {"trivial"}
    assert make(small, "idle") == [row]
    assert "idle on tiny: not stored, as there is a row" in capsys.readouterr().out
    assert command.main(["--list", "--rows", str(small / "rows.json")]) == 0
    assert capsys.readouterr().out.split() == [
        *(f"{SCENARIO}-{name}" for name in plan.REFERENCES if name != "idle"),
        *(f"{SCENARIO}-{name}-1" for name in (*ABLATIONS, *METHODS)),
    ]
    with pytest.raises(SystemExit):
        command.main(["--method", "nonsense"])


@pytest.mark.long
def test_an_interrupted_run_of_other_libraries_goes_on(small):
    run, out = Run(SCENARIO, "ppo", 1), small / "runs" / "ppo"
    first = runs.train(run, out, 0.01)
    with pytest.raises(ValueError, match=r"has a run of 0\.01 minutes, expected one of 0\.03"):
        runs.train(run, out, 0.03)
    (out / runs.FACTS).unlink()
    second = runs.train(run, out, 0.03)
    assert second["decisions"] > first["decisions"]
    assert second["cpu_minutes"] >= 0.03


def test_a_changed_row_is_refused(tmp_path):
    rows = tmp_path / "rows.json"
    row = {"scenario": "duel", "method": "ppo", "seed": 1, "suite": "s", "outcomes": {"duel": {"novice": "WL"}}}
    results.append(row, rows)
    assert results.append({**row, "seed": 2}, rows)
    assert not results.append({**row, "decisions": 2}, rows)
    assert results.append({**row, "decisions": 3}, rows, replace=True)  # in place of the first
    stored = results.read(rows)
    assert [each["seed"] for each in stored] == [1, 2]
    assert stored[0]["decisions"] == 3
    rows.write_text(rows.read_text().replace("WL", "WW"))
    with pytest.raises(ValueError, match="differs from its hash"):
        results.read(rows)


def test_the_published_page_is_that_of_the_published_rows():
    rows, pairs = (judge.current(results.read(file)) for file in (results.FILE, cross.FILE))
    assert rows
    for path in page.PAGES:
        text = path.read_text(encoding="utf-8")
        assert page.filled_page(text, rows, pairs) == text
    with pytest.raises(ValueError, match="expected a mark of missing"):
        page.filled_page("<!-- baselines: nonsense -->\n<!-- end -->", rows, pairs)
