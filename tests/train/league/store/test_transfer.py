import hashlib
import json
import os
import shutil
import zipfile

import pytest

from echelon_train.checkpoints.checkpoint import WEIGHTS_FILE, load_checkpoint
from echelon_train.league.errors import LeagueError
from echelon_train.league.store import database, transfer
from echelon_train.league.store.database import DATABASE_FILE, writing
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from echelon_train.league.store.transfer import LIST_FILE, export_league, import_league
from train.league.leagues import played, saved, small_league


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leagues")
    league = small_league(folder / "league")
    league.add_checkpoint(saved(folder / "a"), "main", "learner")
    league.record(played("learner", "novice", (1, 0), 4))
    return league


@pytest.fixture(scope="module")
def exported(original, tmp_path_factory):
    file = tmp_path_factory.mktemp("exports") / "league.zip"
    export_league(original, file)
    return file


def repack(source, target, replace=None, add=None, drop=(), compression=zipfile.ZIP_STORED):
    """An archive with other entries and a list that vouches for them."""
    with zipfile.ZipFile(source) as archive:
        entries = {name: archive.read(name) for name in archive.namelist() if name not in drop}
    entries |= replace or {}
    document = json.loads(entries.pop(LIST_FILE))
    entries |= add or {}
    document["files"] = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in entries.items()
    }
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, data in {**entries, LIST_FILE: json.dumps(document)}.items():
            archive.writestr(name, data)
    return target


def test_what_is_exported_is_imported(original, exported, tmp_path):
    assert [entry.name for entry in exported.parent.iterdir()] == [exported.name]
    league = import_league(exported, tmp_path / "new")
    assert league.path == tmp_path / "new" and league.settings == original.settings
    for each in ("members", "matches", "history", "pair_scores"):
        assert getattr(league, each)() == getattr(original, each)(), each
    assert load_checkpoint(league.member_policy("learner")).steps == 100
    assert fsck(league.path) == []
    assert league.record(played("learner", "expert", number=8)) and league.close_period() == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["new"]


def test_a_league_with_a_write_ahead_log(original, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "SAFE_WAL_VERSION", (3, 0, 0))
    league = small_league(tmp_path / "league")
    with writing(league.path) as connection:
        connection.execute("UPDATE members SET state = 'retired' WHERE name = 'expert'")
        export_league(league, tmp_path / "before.zip")
    export_league(league, tmp_path / "after.zip")
    states = {
        name: import_league(tmp_path / f"{name}.zip", tmp_path / name).member("expert").state
        for name in ("before", "after")
    }
    assert states == {"before": "active", "after": "retired"}


def test_what_is_being_written_is_waited_for(original, tmp_path, monkeypatch):
    """Without a write-ahead log the file has what is not committed yet."""
    monkeypatch.setattr(database, "SAFE_WAL_VERSION", (99, 0, 0))
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    shutil.copytree(original.path, tmp_path / "league")
    league = League.open(tmp_path / "league")
    with writing(league.path) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.executemany("INSERT INTO configs VALUES (?, ?)", [(str(n), "x" * 5000) for n in range(20)])
        with pytest.raises(LeagueError, match="another process has kept the league locked"):
            export_league(league, tmp_path / "league.zip")
    assert [entry.name for entry in tmp_path.iterdir()] == ["league"]


def test_nothing_is_overwritten(original, exported, tmp_path):
    with pytest.raises(FileExistsError):
        export_league(original, exported)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").touch()
    with pytest.raises(FileExistsError):
        import_league(exported, tmp_path / "new")
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["mine"]


def test_a_league_with_an_altered_member_is_not_exported(original, tmp_path):
    shutil.copytree(original.path, tmp_path / "league")
    league = League.open(tmp_path / "league")
    (league.member_policy("learner") / WEIGHTS_FILE).unlink()
    with pytest.raises(LeagueError, match=r"'learner' cannot be exported: .*the file is missing"):
        export_league(league, tmp_path / "league.zip")
    assert [entry.name for entry in tmp_path.iterdir()] == ["league"]


def test_an_export_appears_whole_or_not_at_all(original, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer.os, "replace", lambda *args: os.stat(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        export_league(original, tmp_path / "league.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(original, tmp_path):
    with pytest.raises(FileNotFoundError):
        export_league(original, tmp_path / "none" / "league.zip")


def test_no_export(tmp_path):
    (tmp_path / "text").write_text("hello")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    for name, reason in (
        ("text", "damaged, or no export of a league"),
        ("zip", r"no export of a league \(no export.json"),
    ):
        with pytest.raises(LeagueError, match=reason):
            import_league(tmp_path / name, tmp_path / "new")
    with pytest.raises(FileNotFoundError):
        import_league(tmp_path / "none", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_flipped_byte_and_a_missing_end_are_noticed(exported, tmp_path, share):
    data = bytearray(exported.read_bytes())
    (tmp_path / "short").write_bytes(data[: int(share * len(data))])
    data[int(share * len(data))] ^= 0xFF
    (tmp_path / "flipped").write_bytes(data)
    for name in ("short", "flipped"):
        with pytest.raises(LeagueError):
            import_league(tmp_path / name, tmp_path / "new")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["flipped", "short"]


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/tmp/evil",
        "members/../../evil",
        "members/x/policy.safetensors",
        "members/",
        f"members/{'0' * 64}/evil",
        f"members/{'0' * 64}/policy.safetensors/x",
        "league.db-journal",
        "league.db\n",
        "evil",
    ],
)
def test_entries_that_are_no_part_of_a_league_are_not_written(exported, tmp_path, name):
    file = repack(exported, tmp_path / "league.zip", add={name: b"evil"})
    with pytest.raises(LeagueError, match="is no part of a league"):
        import_league(file, tmp_path / "in" / "new")
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["in", "league.zip"]


def test_a_file_of_no_member(exported, tmp_path):
    file = repack(exported, tmp_path / "league.zip", add={f"members/{'0' * 64}/policy.safetensors": b"x"})
    with pytest.raises(LeagueError, match=r"holds a damaged league: .*: belongs to no member"):
        import_league(file, tmp_path / "new")


def test_a_compressed_entry_could_be_larger_than_the_file(exported, tmp_path):
    file = repack(exported, tmp_path / "league.zip", compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(LeagueError, match="expected entries that are stored as they are"):
        import_league(file, tmp_path / "new")


def test_an_entry_that_is_missing_or_not_listed(exported, tmp_path):
    with pytest.raises(LeagueError, match=r"has no league\.db"):
        import_league(repack(exported, tmp_path / "1.zip", drop=[DATABASE_FILE]), tmp_path / "new")
    shutil.copy(exported, tmp_path / "2.zip")
    with zipfile.ZipFile(tmp_path / "2.zip", "a") as archive:
        archive.writestr("more", "x")
    with pytest.raises(LeagueError, match="'more' is not in its list"):
        import_league(tmp_path / "2.zip", tmp_path / "new")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(tmp_path / "2.zip", "a") as archive:
        archive.writestr(DATABASE_FILE, "x")
    with pytest.raises(LeagueError, match="it has an entry twice"):
        import_league(tmp_path / "2.zip", tmp_path / "new")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "export.json cannot be read"),
        ("[]", "export.json cannot be read"),
        ("[" * 100_000, "export.json cannot be read"),
        ('{"format": "x"}', r"is no export of a league \(format 'x'\)"),
        ('{"format": "echelon-league-export", "version": 2}', "export version 2, this release reads 1"),
        ('{"format": "echelon-league-export", "version": 1, "files": {"league.db": 3}}', "is not in its list"),
        ('{"format": "echelon-league-export", "version": 1, "files": 3}', "export.json cannot be read"),
    ],
)
def test_a_list_that_is_none(exported, tmp_path, text, reason):
    with zipfile.ZipFile(exported) as archive, zipfile.ZipFile(tmp_path / "league.zip", "w") as bad:
        for name in archive.namelist():
            bad.writestr(name, text if name == LIST_FILE else archive.read(name))
    with pytest.raises(LeagueError, match=reason):
        import_league(tmp_path / "league.zip", tmp_path / "new")


def test_an_entry_that_is_not_the_listed_one(exported, tmp_path):
    """A sound database, but another one."""
    database.copy_database(small_league(tmp_path / "other").path, tmp_path)
    with zipfile.ZipFile(exported) as archive, zipfile.ZipFile(tmp_path / "league.zip", "w") as bad:
        for name in archive.namelist():
            bad.writestr(name, (tmp_path / name).read_bytes() if name == DATABASE_FILE else archive.read(name))
    with pytest.raises(LeagueError, match=r"damaged: 'league\.db' is not what was exported"):
        import_league(tmp_path / "league.zip", tmp_path / "new")


def test_a_database_that_is_vouched_for_but_is_none(exported, tmp_path):
    file = repack(exported, tmp_path / "league.zip", replace={DATABASE_FILE: b"SQLite?" * 1000})
    with pytest.raises(LeagueError, match=r"damaged .file is not a database"):
        import_league(file, tmp_path / "new")


def test_a_database_with_rules_of_its_own_is_refused(original, exported, tmp_path):
    """A trigger of a stranger would run when we write."""
    database.copy_database(original.path, tmp_path)
    with writing(tmp_path) as connection:
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON matches BEGIN DELETE FROM ratings; END")
    file = repack(exported, tmp_path / "league.zip", replace={DATABASE_FILE: (tmp_path / DATABASE_FILE).read_bytes()})
    with pytest.raises(LeagueError, match="'evil' is foreign"):
        import_league(file, tmp_path / "new")
    assert not (tmp_path / "new").exists()
