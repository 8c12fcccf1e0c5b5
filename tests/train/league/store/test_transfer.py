import copy
import io
import os
import shutil
import zipfile
import zlib

import pytest

from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.league.errors import LeagueError
from echelon_train.league.store import database, transfer
from echelon_train.league.store.database import DATABASE_FILE, writing
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from echelon_train.league.store.transfer import export_league, import_league
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


def repack(source, target, changes, compression=zipfile.ZIP_STORED):
    """An archive with changed entries; None leaves one out."""
    with zipfile.ZipFile(source) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()} | changes
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, data in entries.items():
            if data is not None:
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
    with pytest.raises(FileNotFoundError):
        export_league(original, tmp_path / "none" / "league.zip")
    monkeypatch.setattr(transfer.os, "replace", lambda *args: os.stat(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        export_league(original, tmp_path / "league.zip")
    assert list(tmp_path.iterdir()) == []


def test_no_export(tmp_path):
    (tmp_path / "text").write_text("hello")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    for name in ("text", "zip"):
        with pytest.raises(LeagueError, match="damaged, or no export of a league"):
            import_league(tmp_path / name, tmp_path / "new")
    with pytest.raises(FileNotFoundError):
        import_league(tmp_path / "none", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def contents_of(data: bytes) -> dict[str, bytes] | None:
    """The files in a zip by name; None if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        return None


def test_a_flipped_byte_and_a_missing_end_are_noticed(exported, tmp_path):
    whole = exported.read_bytes()
    for share in (0.0, 0.01, 0.3, 0.6, 0.9, 0.999):
        place = int(share * len(whole))
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            (tmp_path / "league.zip").write_bytes(data)
            if contents_of(data) == contents_of(whole):
                continue  # the byte is part of no content: a time stamp, say
            with pytest.raises(LeagueError):
                import_league(tmp_path / "league.zip", tmp_path / "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["league.zip"]


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
    file = repack(exported, tmp_path / "league.zip", {name: b"evil"})
    with pytest.raises(LeagueError, match="is no part of a league"):
        import_league(file, tmp_path / "in" / "new")
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["in", "league.zip"]


def test_archives_that_hold_no_sound_league_are_refused(original, exported, tmp_path):
    database.copy_database(original.path, tmp_path)
    with writing(tmp_path) as connection:  # would run whenever a match is recorded
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON matches BEGIN DELETE FROM ratings; END")
    foreign = (tmp_path / DATABASE_FILE).read_bytes()
    stray = f"members/{'0' * 64}/policy.safetensors"
    with zipfile.ZipFile(exported) as archive:
        member = archive.namelist()[-1]
    for changes, reason in (
        ({stray: b"x"}, r"holds a damaged league: .*: belongs to no member"),
        ({member: b"x"}, r"holds a damaged league: member learner: .* altered"),
        ({member: None}, r"holds a damaged league: member learner: .* missing"),
        ({DATABASE_FILE: None}, r"no league\.db"),
        ({DATABASE_FILE: b"SQLite?" * 1000}, r"damaged .file is not a database"),
        ({DATABASE_FILE: foreign}, "'evil' is foreign"),
    ):
        with pytest.raises(LeagueError, match=reason):
            import_league(repack(exported, tmp_path / "league.zip", changes), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_another_sound_database_is_refused(original, exported, tmp_path):
    # the same league at another moment, without the checksums of the zip
    database.copy_database(original.path, tmp_path)
    sound = (tmp_path / DATABASE_FILE).read_bytes()
    with writing(tmp_path) as connection:
        connection.execute("UPDATE members SET state = 'retired' WHERE name = 'learner'")
    other = (tmp_path / DATABASE_FILE).read_bytes()
    whole = exported.read_bytes()
    assert len(other) == len(sound) and whole.count(sound) == 1
    (tmp_path / "league.zip").write_bytes(whole.replace(sound, other))
    with pytest.raises(LeagueError, match=r"damaged.*Bad CRC-32"):
        import_league(tmp_path / "league.zip", tmp_path / "new")
    # other leagues, with the checksums of the zip: one without a policy, and one with another policy of the same name
    scripted = small_league(tmp_path / "scripted")
    trained = small_league(tmp_path / "trained")
    trained.add_checkpoint(saved(tmp_path / "b", 2), "main", "learner")
    for league, reason in ((scripted, "belongs to no member"), (trained, "member learner: .* the folder is missing")):
        assert fsck(league.path) == []
        data = (league.path / DATABASE_FILE).read_bytes()
        file = repack(exported, tmp_path / "league.zip", {DATABASE_FILE: data})
        with pytest.raises(LeagueError, match=f"holds a damaged league: .*{reason}"):
            import_league(file, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_entries_that_could_be_larger_than_the_file_are_refused(exported, tmp_path):
    file = repack(exported, tmp_path / "league.zip", {}, zipfile.ZIP_DEFLATED)
    with pytest.raises(LeagueError, match="expected uncompressed entries"):
        import_league(file, tmp_path / "new")
    shutil.copy(exported, file)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(file, "a") as archive:
        archive.writestr(DATABASE_FILE, "x")
    with pytest.raises(LeagueError, match="it has a duplicate entry"):
        import_league(file, tmp_path / "new")


def test_entries_that_share_their_bytes_are_refused(exported, tmp_path):
    file = tmp_path / "league.zip"
    shutil.copy(exported, file)
    with zipfile.ZipFile(file, "a") as archive:
        largest = max(archive.infolist(), key=lambda info: info.file_size)
        for number in range(10):
            shared = copy.copy(largest)
            shared.filename = f"members/{number:064x}/policy.safetensors"
            archive.filelist.append(shared)
        archive.writestr(f"members/{'a' * 64}/policy.safetensors", b"x")  # so that the directory is written
    with pytest.raises(LeagueError, match="its entries are larger than the file"):
        import_league(file, tmp_path / "new")
    assert not (tmp_path / "new").exists()
