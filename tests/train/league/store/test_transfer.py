import copy
import io
import shutil
import zipfile
import zlib
from pathlib import Path

import pytest

from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.league.errors import LeagueError
from echelon_train.league.store import database
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
    assert league.record(played("learner", "expert", number=8)) and league.rate_matches()
    assert [entry.name for entry in tmp_path.iterdir()] == ["new"]


def test_what_is_being_written_is_waited_for(original, tmp_path, monkeypatch):
    """The file has what is not committed yet."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    shutil.copytree(original.path, tmp_path / "league")
    league = League.open(tmp_path / "league")
    with writing(league.path) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.executemany("INSERT INTO configs VALUES (?, ?)", [(str(n), "x" * 5000) for n in range(20)])
        with pytest.raises(LeagueError, match="another process has kept the league locked"):
            export_league(league, tmp_path / "league.zip")
    assert [entry.name for entry in tmp_path.iterdir()] == ["league"]


def contents_of(data: bytes) -> dict[str, bytes] | None:
    """The files in a zip by name; None if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        return None


def test_a_flipped_byte_and_a_missing_end_are_noticed(exported, tmp_path):
    whole, file = exported.read_bytes(), tmp_path / "league.zip"
    for share in (0.0, 0.01, 0.3, 0.6, 0.9, 0.999):
        place = int(share * len(whole))
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            if contents_of(data) != contents_of(whole):  # otherwise the byte is part of no content: a time stamp, say
                file.write_bytes(data)
                with pytest.raises(LeagueError):
                    import_league(file, tmp_path / "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["league.zip"]


def test_nothing_is_overwritten_and_no_altered_member_exported(original, exported, tmp_path):
    with pytest.raises(FileExistsError):
        export_league(original, exported)
    with pytest.raises(FileNotFoundError):
        import_league(tmp_path / "none", tmp_path / "other")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").touch()
    with pytest.raises(FileExistsError):
        import_league(exported, tmp_path / "new")
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["mine"]
    league = League.open(shutil.copytree(original.path, tmp_path / "league"))
    (league.member_policy("learner") / WEIGHTS_FILE).unlink()
    with pytest.raises(LeagueError, match=r"'learner' cannot be exported: .*the file is missing"):
        export_league(league, tmp_path / "league.zip")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["league", "new"]


STRAY = f"members/{'0' * 64}/policy.safetensors"
FOREIGN = [
    "../evil", "/tmp/evil", "members/../../evil", "members/x/policy.safetensors", "members/",
    f"members/{'0' * 64}/evil", f"{STRAY}/x", "league.db-journal", "league.db\n", "evil",
]  # fmt: skip


@pytest.fixture(scope="module")
def databases(original, tmp_path_factory):
    """Databases of other leagues: sound ones without and with another policy, and one with a trigger."""
    folder = tmp_path_factory.mktemp("databases")
    leagues = {name: small_league(folder / name) for name in ("scripted", "trained")}
    leagues["trained"].add_checkpoint(saved(folder / "b", 2), "main", "learner")
    (folder / "evil").mkdir()
    database.copy_database(original.path, folder / "evil")
    with writing(folder / "evil") as connection:  # would run whenever a match is recorded
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON matches BEGIN DELETE FROM ratings; END")
    return {name: (folder / name / DATABASE_FILE).read_bytes() for name in (*leagues, "evil")}


@pytest.mark.parametrize(
    ("entry", "data", "reason"),
    [
        *((name, b"evil", "is no part of a league") for name in FOREIGN),
        (STRAY, b"x", r"holds a damaged league: .*: belongs to no member"),
        ("MEMBER", b"x", r"holds a damaged league: member learner: .* altered"),
        ("MEMBER", None, r"holds a damaged league: member learner: .* missing"),
        (DATABASE_FILE, None, r"no league\.db"),
        (DATABASE_FILE, b"SQLite?" * 1000, r"damaged .file is not a database"),
        (DATABASE_FILE, "evil", "'evil' is foreign"),
        (DATABASE_FILE, "scripted", "holds a damaged league: .*belongs to no member"),
        (DATABASE_FILE, "trained", "holds a damaged league: .*member learner: .* the folder is missing"),
    ],
)
def test_archives_that_hold_no_sound_league_are_refused(exported, databases, tmp_path, entry, data, reason):
    with zipfile.ZipFile(exported) as archive:
        name = archive.namelist()[-1] if entry == "MEMBER" else entry
    file = repack(exported, tmp_path / "league.zip", {name: databases.get(data, data)})
    with pytest.raises(LeagueError, match=reason):
        import_league(file, tmp_path / "in" / "new")
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["in", "league.zip"]


def test_entries_that_are_more_than_the_file_are_refused(exported, tmp_path):
    deflated = repack(exported, tmp_path / "deflated.zip", {}, zipfile.ZIP_DEFLATED)
    twice, shared = (Path(shutil.copy(exported, tmp_path / f"{name}.zip")) for name in ("twice", "shared"))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(twice, "a") as archive:
        archive.writestr(DATABASE_FILE, "x")
    with zipfile.ZipFile(shared, "a") as archive:
        largest = max(archive.infolist(), key=lambda info: info.file_size)
        for number in range(10):
            again = copy.copy(largest)
            again.filename = f"members/{number:064x}/policy.safetensors"
            archive.filelist.append(again)
        archive.writestr(f"members/{'a' * 64}/policy.safetensors", b"x")  # so that the directory is written
    for file, reason in (
        (deflated, "expected uncompressed entries"),
        (twice, "it has a duplicate entry"),
        (shared, "its entries are larger than the file"),
    ):
        with pytest.raises(LeagueError, match=reason):
            import_league(file, tmp_path / "new")
    assert not (tmp_path / "new").exists()
