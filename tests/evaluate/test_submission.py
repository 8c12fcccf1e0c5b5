import base64
import json
import os
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env.evaluate import Player, baseline, freeze_suite, play_match
from echelon_env.evaluate.submission import (
    Method,
    SubmissionError,
    files,
    make_submission,
    read_submission,
    verify_submission,
    write_submission,
)
from echelon_env.evaluate.submission.actions import pack_actions, unpack_actions
from echelon_env.evaluate.submission.document import battle_key
from echelon_env.layout.actions import ACTION_DIM, Action
from evaluate.submissions import Charge, made_player

SCENARIO, OPPONENTS, MAPS = "duel-open", ("trivial", "novice", "competent"), 3


@pytest.fixture(scope="module")
def suite():
    return freeze_suite("small", [SCENARIO], OPPONENTS, MAPS)


def play_suite(player, suite, maps=None):
    config, seeds = suite.config(SCENARIO), suite.scenario(SCENARIO).seeds[:maps]
    return [play_match(player, baseline(name), config, seeds, scenario=SCENARIO) for name in suite.opponents]


@pytest.fixture(scope="module")
def submission(suite):
    """Of a scripted level, which is also one of the opponents."""
    method = Method("My method", "A. Author", "https://example.org/m", 12_000_000, 45.5, "2 cores", "A note.")
    player = baseline("novice")
    return make_submission(play_suite(player, suite), player=player, suite=suite, method=method)


@pytest.fixture(scope="module")
def text(submission, tmp_path_factory):
    path = tmp_path_factory.mktemp("submission") / "submission.json"
    write_submission(path, submission)
    return path.read_text()


@pytest.fixture
def read(text, suite, tmp_path):
    """Reads the submission after an edit of its document."""

    def edited(edit):
        document = json.loads(text)
        edit(document)
        (tmp_path / "edited.json").write_text(json.dumps(document))
        return read_submission(tmp_path / "edited.json", suite=suite)

    return edited


def test_a_submission_is_read_as_it_was_written_and_verified(submission, suite, tmp_path):
    path = tmp_path / "submission.json"
    write_submission(path, submission)
    assert read_submission(path, suite=suite) == submission
    assert read_submission(path, suite=suite).results_hash == submission.results_hash
    assert verify_submission(submission) == ()
    assert submission.complete == (SCENARIO,)
    played = play_suite(baseline("novice"), suite)
    assert [match.battles for match in submission.matches] == [match.battles for match in played]
    assert {match.first for match in submission.matches} == {"My method"}
    assert 0 < len(submission.proofs) == sum(match.wins + match.draws for match in played) < 2 * MAPS * len(OPPONENTS)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        write_submission(path, submission)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


RESULTS, COLUMNS = ("results", SCENARIO, "trivial"), ("outcome", "reason", "decisions", "scores", "survivors")


def put(value, *keys):
    def edit(document):
        for key in keys[:-1]:
            document = document[key]
        if value is REMOVED:
            del document[keys[-1]]
        else:
            document[keys[-1]] = value

    return edit


REMOVED = object()


def change(column, value, battle=0):
    return put(value, *RESULTS, column, battle)


def rewrite(*row):
    """Another result of the first battle."""

    def edit(document):
        for column, value in zip(COLUMNS, row, strict=True):
            change(column, value)(document)

    return edit


def swap_battles(document):
    for column in document["results"][SCENARIO]["trivial"].values():
        column[0], column[2] = column[2], column[0]


def put_proof(value, lost=False):
    """Another proof of the first battle with an outcome."""

    def edit(document):
        for opponent, columns in document["results"][SCENARIO].items():
            for battle, outcome in enumerate(columns["outcome"]):
                if (outcome == -1) == lost:
                    document["proofs"][SCENARIO][opponent][battle] = value
                    return

    return edit


def repack(actions):
    return base64.b64encode(zlib.compress(actions)).decode()


BAD = [
    (rewrite(-1, "elimination", 200, [1.0, 2.0], [0, 1]), "results_hash: expected"),
    (rewrite(1, "elimination", 200, [1.0, 1.0], [1, 1]), "expected elimination if and only if a team has no"),
    (rewrite(1, "time_limit", 240, [1.0, 1.0], [0, 1]), "expected elimination if and only if a team has no"),
    (rewrite(1, "time_limit", 200, [1.0, 0.0], [1, 1]), "by time_limit after 200 decisions, expected 240"),
    (rewrite(1, "zone_control", 200, [14.5, 1.0], [1, 1]), "expected zone_control if and only if a score"),
    (rewrite(1, "zone_control", 179, [45.0, 1.0], [1, 1]), "a score is higher than the 44.75 s of the battle"),
    (rewrite(1, "elimination", 200, [1.0, 1.0], [0, 1]), "the outcome is 1, expected -1, which follows"),
    (rewrite(0, "zone_control", 200, [46.0, 45.0], [1, 1]), "the outcome is 0, expected 1, which follows"),
    (rewrite(-1, "time_limit", 240, [2.0, 1.0], [1, 1]), "the outcome is -1, expected 1, which follows"),
    (swap_battles, "results_hash: expected"),
    (put({"weights_sha256": "0" * 64}, "player", "identity"), "results_hash: expected"),
    (put("echelon-replay", "format"), "expected a submission of echelon-env"),
    (put(True, "version"), "version True of the format"),
    (put(1, "x" * 10**6), "expected keys of at most 60 characters"),
    (change("decisions", 241), "battle 0: expected at most 240 decisions, got 241"),
    (change("decisions", 10**400), "decisions.0.'?: expected a number"),
    (change("scores", [10**400, 0]), "scores.0..0.'?: expected a number"),
    (change("scores", [-0.0, 0.0]), "battle 0: expected two scores"),
    (change("scores", [1.0]), "battle 0: expected two scores"),
    (change("survivors", [2, 0]), "battle 0: expected at most .* survivors"),
    (put([1] * 8, *RESULTS, "outcome"), "expected lists of an even number of 2 to 6"),
    (put({}, "results"), "results: expected an object with one or several of duel-open"),
    (put("x" * 10**6, "suite", "name"), "suite.name: expected a printable text"),
    (put("other", "suite", "name"), "expected small with the hash"),
    (put(REMOVED, "stamp", "package"), "stamp: expected an object"),
    (put("a\nb", "method", "note"), "method.note: expected a printable text"),
    (put("\u202eb", "method", "authors"), "method.authors: expected a printable text"),
    (put("javascript:alert(1)", "method", "url"), "method.url: expected an address"),
    (put("https://x.org/) [a](b", "method", "url"), "method.url: expected an address"),
    (put({str(number): 1 for number in range(17)}, "player", "identity"), "identity: expected at most 16 entries"),
    (put_proof(None), "battle 0: expected null if and only if it was lost"),
    (put_proof("", lost=True), "expected null if and only if it was lost"),
    (put_proof("?"), "battle 0: expected base64"),
    (put_proof("\u00e4"), "battle 0: expected base64"),
    (put(REMOVED, "proofs", SCENARIO, "novice", 0), "novice: expected 6 values, one for each battle"),
]


@pytest.mark.parametrize(("edit", "message"), BAD)
def test_tampered_submissions_are_refused(edit, message, read):
    with pytest.raises(SubmissionError, match=message) as caught:
        read(edit)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
    assert "edited.json: " in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[" * 100_000, "expected JSON"),
        (b"[]", "expected a submission"),
        (b'{"format": "echelon-submission", "version": NaN}', "expected finite numbers, got NaN"),
        (b"[" + b"[]," * files.MAX_VALUES + b"[]]", "expected at most 1,048,576 values"),
        (b" " * (files.MAX_BYTES + 1), "larger than 134,217,728 bytes"),
    ],
    ids=["deep", "list", "nan", "many", "large"],
)
def test_other_files_are_refused(data, message, text, tmp_path):
    path = tmp_path / "file.json"
    path.write_bytes(data)
    with pytest.raises(SubmissionError, match=message):
        read_submission(path)


def test_pipes_folders_and_unknown_suites_are_refused_at_once(text, tmp_path):
    os.mkfifo(tmp_path / "pipe\n.json")
    with pytest.raises(SubmissionError, match=r"pipe\n\.json: .*not a regular file"):
        read_submission(tmp_path / "pipe\n.json")
    with pytest.raises(IsADirectoryError):
        read_submission(tmp_path)
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(SubmissionError, match=r"suite.name: expected one of echelon-eval-v3.*, got 'small'; a suite"):
        read_submission(tmp_path / "file.json")


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_edit_of_a_document_gives_another_submission(data, text, suite, submission, tmp_path_factory):
    """An edit of a place anywhere is refused with a sentence, or changes nothing that counts, or fails to verify."""
    document = json.loads(text)
    parent, key = document, data.draw(st.sampled_from(sorted(document)))
    while isinstance(parent[key], (dict, list)) and parent[key] and data.draw(st.integers(0, 3)):
        parent = parent[key]
        key = data.draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else range(len(parent))))
    plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
    parent[key] = data.draw(plain | st.lists(plain, max_size=2) | st.just({}) | st.just({"": 1}))
    path = tmp_path_factory.mktemp("edited") / "file.json"
    path.write_text(json.dumps(document))
    try:
        found = read_submission(path, suite=suite)
    except SubmissionError:
        return
    assert [match.battles for match in found.matches] == [match.battles for match in submission.matches]
    assert found.results_hash == submission.results_hash
    assert (found.action_mode, found.identity) == (submission.action_mode, submission.identity)
    if found.proofs != submission.proofs:
        with pytest.raises(SubmissionError, match="the actions"):
            verify_submission(found)


@pytest.mark.parametrize(
    ("proof", "message"),
    [
        ("AAAA", "the actions cannot be unpacked"),
        ("", "the actions are not those of"),
        (repack(b""), "the actions are not those of"),
        (repack(bytes(1 << 26)), "the actions are not those of"),
    ],
)
def test_proofs_that_are_none_fail_to_verify(proof, message, read):
    with pytest.raises(SubmissionError, match=f"proof of battle 0 of duel-open against trivial: {message}"):
        verify_submission(read(put_proof(proof)))


def changed_actions(submission, change):
    """The submission with other actions in the proof of its first battle."""
    key, data = next(iter(submission.proofs.items()))
    match = next(match for match in submission.matches if match.second == key.opponent)
    decisions = round(match.battles[key.number].seconds / submission.suite.config(SCENARIO).decision_seconds)
    actions = unpack_actions(data, (decisions, 1, ACTION_DIM))
    return replace(submission, proofs={**submission.proofs, key: pack_actions(change(actions))}), key


def test_a_changed_action_fails(submission):
    def hold_fire(actions):
        actions = actions.copy()
        actions[:, 0, Action.PRIMARY] = -1.0  # one shot less may change nothing
        return actions

    tampered, key = changed_actions(submission, hold_fire)
    failure, *others = verify_submission(tampered)
    assert not others
    assert failure.startswith(f"battle {key.number} of {key.scenario} against {key.opponent}: stated ")
    assert ", replayed " in failure
    same, _ = changed_actions(submission, lambda actions: actions)
    assert verify_submission(same) == ()


LIES = [
    {"scores": (0.5, 0.125)},
    {"seconds": 59.0},
    {"outcome": 1, "reason": "time_limit", "seconds": 60.0, "scores": (9.0, 0.0), "survivors": (1, 1)},
    {"outcome": 0, "reason": "elimination", "seconds": 50.0, "scores": (0.0, 0.0), "survivors": (0, 0)},
]


@pytest.mark.parametrize("lie", LIES)
def test_other_results_fail(lie, submission, suite, tmp_path):
    """Somebody who edits results computes their hash, and makes recordings of the stated length."""
    battles = {(match.second, battle.number): battle for match in submission.matches for battle in match.battles}
    key = next(key for key in submission.proofs if battles[key[1:]].reason == "elimination")
    lying = changed_battles(submission, [key], **lie)
    assert lying.results_hash != submission.results_hash
    proofs = dict(submission.proofs)
    if "seconds" in lie:
        decisions = round(lie["seconds"] / suite.config(SCENARIO).decision_seconds)
        proofs[key] = pack_actions(np.zeros((decisions, 1, ACTION_DIM), np.float32))
    write_submission(tmp_path / "lie.json", replace(lying, proofs=proofs))
    (failure,) = verify_submission(read_submission(tmp_path / "lie.json", suite=suite))
    assert f"battle {key.number} of" in failure


def changed_battles(submission, keys, **changes):
    """The submission with another result of some battles, without proofs."""
    matches = []
    for match in submission.matches:
        battles = (
            replace(battle, **changes) if battle_key(match, battle) in keys else battle for battle in match.battles
        )
        matches.append(replace(match, battles=tuple(battles)))
    return replace(submission, matches=tuple(matches), proofs={})


def test_other_rules_are_named(submission):
    for key, what in (("engine_hash", "rules of the game"), ("opponents_hash", "opponents")):
        other = replace(submission, stamp={**submission.stamp, key: "ab" * 32})
        with pytest.raises(SubmissionError, match=f"played with other {what}: {key} abababababab"):
            verify_submission(other)


@given(shape=st.tuples(st.integers(1, 6), st.integers(1, 3), st.just(ACTION_DIM)), seed=st.integers(0, 99))
def test_actions_are_unpacked_as_they_were_packed(shape, seed):
    actions = np.random.default_rng(seed).standard_normal(shape, np.float32)
    np.testing.assert_array_equal(unpack_actions(pack_actions(actions), shape), actions)
    with pytest.raises(SubmissionError, match="expected finite actions"):
        unpack_actions(pack_actions(np.full(shape, np.nan, np.float32)), shape)


def acting(act, name="made"):
    """A player that walks and fires, with changed actions."""
    changed = type("Changed", (Charge,), {"act": lambda self, observations: act(Charge.act(self, observations))})
    return made_player(changed, name)


def test_actions_are_recorded_as_they_are_played_and_in_their_batch():
    """Some are not finite, and others depend on the number of the battles."""

    def act(actions):
        actions = actions.astype(np.float64)
        actions[:, Action.STRAFE], actions[:, Action.VENT] = np.nan, 1e300
        actions[:, Action.TURN] = 0.1 * len(actions)
        return actions

    suite, player = freeze_suite("idle", [SCENARIO], ["idle"], MAPS), acting(act, "../runs/" + "x" * 99)
    submission = make_submission(play_suite(player, suite), player=player, suite=suite)
    assert len(submission.proofs) > 0
    assert verify_submission(submission) == ()
    assert submission.method == Method("x" * 30 + "…" + "x" * 29), "by default the last part of the player's name"


def test_a_player_that_acts_differently_each_time_is_refused():
    rng = np.random.default_rng(0)
    player = acting(lambda actions: actions + rng.uniform(-1, 0, actions.shape).astype(np.float32), "chance")
    idle = freeze_suite("idle", [SCENARIO], ["idle"], MAPS)
    with pytest.raises(SubmissionError, match="ends differently when it is played again: the actions of 'chance' must"):
        make_submission(play_suite(player, idle), player=player, suite=idle)


def test_matches_that_are_no_submission_are_refused(suite, tmp_path):
    player = made_player(Charge)
    matches = play_suite(player, suite, maps=1)
    part = make_submission(matches, player=player, suite=suite)
    assert part.complete == ()
    write_submission(tmp_path / "part.json", part)
    assert verify_submission(read_submission(tmp_path / "part.json", suite=suite)) == ()
    longer = play_suite(player, suite)
    for bad in ([], matches[1:], [*matches, matches[0]], [replace(matches[0], first="x"), *matches[1:]]):
        with pytest.raises(SubmissionError, match="expected the matches of 'charge' against trivial, novice"):
            make_submission(bad, player=player, suite=suite)
    with pytest.raises(SubmissionError, match="expected two battles on each of the first maps"):
        make_submission([longer[0], *matches[1:]], player=player, suite=suite)
    named = Player("charge", "scripted", player.make, identity={"weights": 1.5})
    with pytest.raises(SubmissionError, match=r"identity\.weights: expected a printable text"):
        make_submission(matches, player=named, suite=suite)


def test_a_submission_that_would_be_too_large_is_not_written(submission, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    with pytest.raises(SubmissionError, match="expected at most 1,000"):
        write_submission(tmp_path / "large.json", submission)
    assert not [*tmp_path.iterdir()]
