"""The report of a training run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from echelon_env.evaluate import checkpoint_player, named_player, validation_seed
from echelon_env.evaluate.estimates import wilson
from echelon_env.evaluate.tables import percent, plural
from echelon_env.networks.checkpoint import find_checkpoint
from echelon_env.networks.weights import CheckpointError
from echelon_env.replays import Replay, read_replay, record_battle
from echelon_train.config.train import TrainConfig
from echelon_train.report.card import card_section
from echelon_train.report.charts import charts
from echelon_train.report.exploitability import exploitability_section
from echelon_train.report.format import interval, number, share
from echelon_train.report.markup import Html, element, folded, join, more, note, section, table, tiles
from echelon_train.report.page import Page, write
from echelon_train.report.replays import Embedded, embed_replay, replays_section
from echelon_train.report.sources import RunSource, read_run, texts
from echelon_train.report.statistics import statistics_sections
from echelon_train.runs.curves import AXES, BATTLES, EVALUATION, LEARNING, RESULTS, SPEED, run_charts, win_rate_chart
from echelon_train.runs.evaluation import maps_by_opponent
from echelon_train.runs.exploitability import EXPLOIT_FOLDER, EXPLOITABILITY_FILE
from echelon_train.runs.loggers import FILMS_FOLDER
from echelon_train.runs.metrics import EVALUATION_STEPS, STEPS, is_number, matching

MOST_SETTINGS = 2000
MOST_SHOWN = 50  # rows of a table of provenance


def write_run_report(run: Path, out: Path, *, replays: int = 2) -> None:
    """Write the report of a run as one HTML file; an existing one is replaced.

    It has up to so many `replays`: battles that the run has filmed, evenly spaced, or else one that is played now.

    Raises RunFolderError if the folder holds no run, or a damaged one, and OSError.
    """
    source = read_run(run)
    shown = run_replays(source, replays)
    metrics = source.metrics
    battles = [*run_charts(metrics, BATTLES)]
    sections = [
        *_results(source),
        section("Battles over training", charts(battles)) if battles else None,
        *statistics_sections([(source.name, [source.path])]),
        card_section(run, source.steps),
        exploitability_section([*sorted(run.glob(f"{EXPLOIT_FOLDER}*/{EXPLOITABILITY_FILE}"))], _weights(run)),
        replays_section(shown),
        section("Learning", charts(run_charts(metrics, LEARNING))) if metrics else None,
        section("Speed", charts(run_charts(metrics, SPEED))) if metrics else None,
        section("Configuration", *configuration(source)),
        section("Provenance", *provenance(source)),
    ]
    page = Page(
        title=f"Run {source.name}",
        lead=join([_lead(source), tiles(_facts(source))]),
        sections=sections,
        replays=shown,
    )
    write(out, page)


def _weights(run: Path) -> str | None:
    """The SHA-256 of the weights of a run's last checkpoint; None without one."""
    try:
        return str(checkpoint_player(run).identity["weights_sha256"])
    except CheckpointError:
        return None


def _lead(run: RunSource) -> Html:
    config = run.config
    names, weights = config.opponent.names, config.opponent.weights
    if config.league.path:
        opponents = f"the league {config.league.path} as {config.league.role}"
    elif config.opponent.single:
        opponents = names[0]
    else:
        opponents = ", ".join(f"{name} ({weight:g})" for name, weight in zip(names, weights, strict=True))
    return element("p", f"Trained against {opponents}, seed {config.seed}, started {run.record.started}.")


def _facts(run: RunSource) -> Iterator[tuple[str, Any, str]]:
    rate, low, high = run.evaluation
    if rate is not None:
        bounds = "" if low is None or high is None else f"95 % interval {share(low)} to {share(high)}"
        yield "win rate, last evaluation", share(rate), bounds
    trained = run.last("battle/win_rate")
    if trained is not None:
        yield "win rate in training", share(trained), f"{run.last('battle/count') or 0:,.0f} battles"
    yield "decisions", f"{run.steps:,}", f"of {run.config.steps:,}"
    minutes = run.last("time/cpu_minutes")
    if minutes is not None:
        yield "processor time", f"{minutes:.1f} min", ""
    fps = run.last("time/fps")
    if fps is not None:
        yield "speed", f"{fps:,.0f}/s", "samples, mean"


def _results(run: RunSource) -> Iterator[Html]:
    if not run.metrics:
        yield section("Results", note("The run has logged no metrics yet."))
        return
    yield section(
        "Results",
        charts([win_rate_chart(run.metrics), *run_charts(run.metrics, RESULTS)]),
        note(AXES),
        element("h3", "Last evaluation"),
        evaluation_table(run),
    )


def evaluation_table(run: RunSource) -> Html:
    """The shares of the last evaluation, and the win rates against each of several opponents, with intervals."""
    line = next((line for line in reversed(run.metrics) if is_number(line.get(EVALUATION))), None)
    if line is None:
        return note("The run has not been evaluated.")
    single = _last_stage(run).evaluation_opponents.single
    names = [*matching([line], f"{EVALUATION}/*").items()]
    whole = str(single) if single else "all, weighted" if names else "its opponents"
    rows = [
        [
            whole,
            interval(*run.evaluation),
            *(percent(run.last(f"eval/{each}_rate")) for each in ("draw", "loss")),
            f"{run.config.evaluation_battles:,}",
        ]
    ]
    for name, metric in names:
        battles = _battles_against(run, name)
        found = line[metric] if is_number(line[metric]) else None
        won = percent(found)
        if battles is not None and found is not None and 0 <= found <= 1:
            bounds = wilson(round(found * battles), battles)
            won = interval(found, bounds.low, bounds.high)
        rows.append([name, won, "", "", f"{battles or '-'}"])
    steps = line.get(EVALUATION_STEPS, line[STEPS])
    return join(
        [
            table(["opponent", "won, %", "drawn, %", "lost, %", "battles"], rows, name="evaluation"),
            note(f"After {steps:,} decisions, on maps that training never uses; 95 % intervals in brackets."),
        ]
    )


def _last_stage(run: RunSource) -> TrainConfig:
    """The configuration of the stage that the run has reached."""
    stages = run.config.plain_runs()
    return stages[min(max(int(run.last("curriculum/stage") or 0), 0), len(stages) - 1)]


def _battles_against(run: RunSource, name: str) -> int | None:
    """The battles of an evaluation against an opponent, as the configuration determines them."""
    for plain in run.config.plain_runs():
        opponents = plain.evaluation_opponents
        if name in opponents.names:
            return 2 * maps_by_opponent(opponents, run.config.evaluation_battles)[opponents.names.index(name)]
    return None


def run_replays(run: RunSource, most: int) -> list[Embedded]:
    """Up to `most` of the battles that a run has filmed, the first and the last among them; without any a new one."""
    if not most:
        return []
    folder = run.path / FILMS_FOLDER
    films = sorted(path for path in folder.glob("*") if path.suffix in (".html", ".replay"))
    if not films:
        why = f"The run has filmed no battles (--film-every): the newest checkpoint of {run.name} plays this one now."
        return [embed_replay(f"{run.name}, newest checkpoint", why, lambda: record_newest(run), opened=True)]
    places = np.unique(np.linspace(0, len(films) - 1, min(most, len(films))).round().astype(int)) if most > 1 else [-1]
    chosen = [films[place] for place in places]
    shown = []
    for path in chosen:
        title = (
            f"{run.name} after {int(path.stem):,} decisions" if path.stem.isdecimal() else f"{run.name}: {path.stem}"
        )
        remark = f"Filmed during the run, battle {path.name}, {plural(len(films), 'film')} in all."
        shown.append(embed_replay(title, remark, partial(read_replay, path), opened=path is chosen[-1]))
    return shown


def record_newest(run: RunSource) -> Replay:
    """A battle of the newest checkpoint against the run's evaluation opponent, as `--film-every` plays it.

    Raises CheckpointError without one, and ConfigError.
    """
    player = checkpoint_player(find_checkpoint(run.path))
    stage = _last_stage(run)
    opponents = stage.evaluation_opponents
    opponent = named_player(opponents.members[int(np.argmax(opponents.weights))], validation_seed(stage.seed))
    return record_battle(player, opponent, player.battle or stage.battle, seed=stage.evaluation_maps[0])


_GROUPS = ("battle", "extra_scenarios", "network", "ppo", "reward_schedules", "league", "curriculum")


def configuration(run: RunSource) -> Iterator[Html]:
    """The settings, those of battles folded."""
    groups: dict[str, dict[str, str]] = {}
    for name, value in run.settings.items():
        group, _, rest = name.partition(".")
        nested = bool(rest) and group in _GROUPS
        groups.setdefault(group if nested else "run", {})[rest if nested else name] = value
    for group, values in groups.items():
        yield folded(f"{group} ({plural(len(values), 'setting')})", settings_table(values), opened=group == "run")


def settings_table(values: Mapping[str, Any], most: int = MOST_SETTINGS) -> Html:
    """Names and values, at most so many."""
    rows = [[name, _shortened(value)] for name, value in itertools.islice(values.items(), most)]
    return join([table([], rows, class_="facts"), *more(len(values), most)])


def provenance(run: RunSource) -> Iterator[Html]:
    """Command, commit, versions and machine, ancestry and resumes."""
    record = run.record
    diff = record.git_diff
    facts = {
        "folder": str(run.path.resolve()),
        "command": " ".join(record.command),
        "started": record.started,
        "git commit": record.git_commit,
        "uncommitted changes": f"{number(diff['bytes'])} bytes, {diff.get('file')}" if diff.get("bytes") else None,
        **{f"seed: {name}": value for name, value in record.seeds.items()},
        **{f"machine: {name}": value for name, value in texts(record.machine).items()},
        "packages": ", ".join(f"{name} {version}" for name, version in record.packages.items()),
    }
    yield settings_table({name: value for name, value in facts.items() if value not in (None, "")})
    ancestry = {f"{place}": each for place, each in enumerate(record.ancestry, 1)}
    for title, found in (("Ancestry", ancestry), ("Policies among its opponents and its teacher", record.policies)):
        if found:
            yield element("h3", title)
            yield settings_table(found, MOST_SHOWN)
    if record.resumed:
        yield element("h3", "Resumed")
        rows = [
            [f"{each.steps:,} decisions", each.started, each.git_commit or "", " ".join(each.command)]
            for each in record.resumed[:MOST_SHOWN]
        ]
        yield table(["at", "started", "git commit", "command"], rows, class_="facts")
        yield from more(len(record.resumed), MOST_SHOWN)


def _shortened(value: Any, most: int = 1000) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= most else f"{text[:most]}…"
