import errno
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echelon_env.cli import main, maps
from echelon_env.config.scenario import make_config
from echelon_env.terrain import Recipe, Terrain, generate
from echelon_env.terrain.biomes import BIOMES
from echelon_env.terrain.statistics import map_statistics

SMALL = ["--scenario", "duel-open"]


@pytest.fixture(autouse=True)
def _in_a_separate_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fail(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a bad command line prints; it leaves nothing behind."""
    before = sorted(Path().rglob("*"))
    try:
        code = main(["maps", *arguments])
    except SystemExit as error:
        code = error.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before
    return captured.err


def test_a_sheet_gets_the_next_free_name(capsys):
    for name in ("maps.png", "maps-2.png"):
        assert main(["maps", *SMALL, "--maps", "2"]) == 0
        assert capsys.readouterr().out == f"{name}: duel-open, 2 maps, seeds 0 to 1\n"
    assert Path("maps.png").read_bytes() == Path("maps-2.png").read_bytes()
    assert sorted(path.name for path in Path().iterdir()) == ["maps-2.png", "maps.png"]


@pytest.mark.long
@pytest.mark.parametrize(("view", "count"), [("above", 1), ("isometric", 3), ("above", 5), ("isometric", 64)])
def test_sheets_are_no_wider_than_a_screen(view, count):
    assert main(["maps", *SMALL, "--view", view, "--maps", str(count), "--out", "sheet.png"]) == 0
    with Image.open("sheet.png") as sheet:
        assert sheet.format == "PNG"
        assert 600 < sheet.width <= 2400
        assert 300 < sheet.height < 4000


def test_seeds_choose_the_maps():
    for seed in ("3", "4"):
        assert main(["maps", *SMALL, "--maps", "1", "--seed", seed, "--out", f"{seed}.png"]) == 0
    assert Path("3.png").read_bytes() != Path("4.png").read_bytes()


@pytest.mark.long
def test_a_page_for_each_biome(capsys):
    assert main(["maps", *SMALL, "--biomes", "urban", "jungle"]) == 0
    assert capsys.readouterr().out == "biomes: urban, jungle\n"
    assert sorted(path.name for path in Path("biomes").iterdir()) == ["jungle.png", "urban.png"]
    with Image.open("biomes/jungle.png") as jungle, Image.open("biomes/urban.png") as urban:
        assert 1200 < jungle.width <= 2400
        red, green, blue = (np.asarray(channel, float) for channel in jungle.split())
        leaves = (green > red + 25) & (green > blue + 25)
        assert leaves.mean() > 0.08
        red, green, blue = (np.asarray(channel, float) for channel in urban.split())
        assert ((green > red + 25) & (green > blue + 25)).mean() < 0.01


def test_biomes_without_names_are_all_biomes(monkeypatch, capsys):
    monkeypatch.setattr(maps, "draw_biomes", lambda configs, seed, out: None)
    assert main(["maps", "--biomes"]) == 0
    assert capsys.readouterr().out == f"biomes: {', '.join(BIOMES)}\n"


def test_recipes_generate_the_maps_again(capsys):
    assert main(["maps", *SMALL, "--maps", "3", "--seed", "99", "--recipes", "pools/small"]) == 0
    assert capsys.readouterr().out == "pools/small: recipes of duel-open, 3 maps, seeds 99 to 101\n"
    files = sorted(Path("pools/small").iterdir())
    assert [file.name for file in files] == ["099.json", "100.json", "101.json"]
    for seed, file in enumerate(files, 99):
        terrain = Terrain.from_recipe(Recipe.from_json(file.read_text()))
        assert terrain.content_hash == generate(make_config("duel-open"), seed).content_hash


def test_recipes_are_named_for_every_seed():
    assert main(["maps", *SMALL, "--maps", "1", "--seed", str(2**64 - 1), "--recipes", "last"]) == 0
    assert [path.name for path in Path("last").iterdir()] == [f"{2**64 - 1}.json"]


@pytest.mark.parametrize("arguments", [["--recipes", "new"], ["--out", "new.png"], ["--biomes", "--out", "new"]])
def test_ctrl_c_leaves_nothing(arguments, monkeypatch, capsys):
    def interrupted(config, seed):
        raise KeyboardInterrupt

    monkeypatch.setattr(maps, "generate", interrupted)
    assert main(["maps", *SMALL, *arguments]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_a_full_disk_leaves_nothing_and_names_the_folder(monkeypatch, capsys):
    written = []

    def write_text(path, text, encoding):
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path.write_bytes(text.encode()))

    monkeypatch.setattr(Path, "write_text", write_text)
    assert fail([*SMALL, "--recipes", "pool"], capsys) == "echelon: pool: No space left on device\n"
    assert len(written) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scenario", "dule"], "did you mean 'duel'"),
        (["--scenario", "none.toml"], "none.toml"),
        (["--biomes", "urbn"], "did you mean 'urban'"),
        (["--maps", "0"], "--maps"),
        (["--maps", "65"], "--maps: expected at most 64 on a sheet"),
        (["--maps", "100001", "--recipes", "x"], "--maps: expected at most 100,000"),
        (["--seed", "-1"], "--seed"),
        (["--seed", str(2**64), "--maps", "1"], "--seed"),
        (["--seed", str(2**64 - 3)], "--seed"),
        (["--view", "below"], "--view"),
        (["--view", "isometric", "--biomes"], "--view"),
        (["--maps", "2", "--biomes"], "--maps"),
        (["--json"], "--statistics"),
        (["--recipes", "x", "--biomes"], "--recipes"),
        (["--recipes", "x", "--out", "y"], "not allowed with"),
        (["--out", "missing/maps.png"], "missing: no such folder"),
        (["--out", "maps.jpg"], "--out: expected a name that ends in .png, got maps.jpg"),
    ],
)
def test_bad_command_lines_are_reported_in_one_line(arguments, message, capsys):
    assert message in fail(arguments, capsys)


def test_nothing_is_overwritten(capsys):
    Path("kept.png").write_text("kept")
    Path("full").mkdir()
    Path("full/file").write_text("kept")
    assert "kept.png: exists already" in fail([*SMALL, "--out", "kept.png"], capsys)
    for arguments in (["--recipes", "full"], ["--biomes", "--out", "full"], ["--recipes", "kept.png"]):
        assert "not an empty folder" in fail([*SMALL, *arguments], capsys)
    assert Path("kept.png").read_text() == Path("full/file").read_text() == "kept"


def test_statistics_of_a_scenario(capsys):
    assert main(["maps", *SMALL, "--maps", "3", "--statistics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "duel-open, 3 maps, seeds 0 to 2"
    assert all(len(line) <= 80 for line in lines)
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:6]}
    columns = dict(zip(rows.pop("cover"), range(1, 12), strict=True))
    distances = [map_statistics(generate(make_config("duel-open"), seed)).zone_distance for seed in range(3)]
    walks = [int(rows[name][columns["walk"]]) for name in ("least", "mean", "greatest")]
    assert walks == [round(min(distances)), round(sum(distances) / 3), round(max(distances))]
    assert {line.split()[0] for line in lines[7:]} == {"cover", *columns}


def test_statistics_of_biomes(capsys):
    assert main(["maps", *SMALL, "--maps", "2", "--statistics", "--biomes", "barrens", "jungle"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    cover = {name: int(values[0]) for name, *values in map(str.split, lines[3:5])}
    assert cover["barrens"] < cover["jungle"]


def test_statistics_as_json(capsys):
    assert main(["maps", *SMALL, "--maps", "2", "--seed", "5", "--statistics", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["scenario"], document["seeds"]) == ("duel-open", [5, 6])
    statistics = document["statistics"]["duel-open"]
    measured = [map_statistics(generate(make_config("duel-open"), seed)).sight_line for seed in (5, 6)]
    assert statistics["mean"]["sight_line"] == pytest.approx(np.mean(measured))
    assert statistics["deviation"]["sight_line"] == pytest.approx(np.std(measured))
    assert [statistics[name]["sight_line"] for name in ("least", "greatest")] == sorted(measured)


def test_progress_of_many_maps_goes_to_the_error_stream(monkeypatch, capsys):
    monkeypatch.setattr(maps, "_REPORT_EVERY", 2)
    assert main(["maps", *SMALL, "--maps", "5", "--recipes", "pool"]) == 0
    assert capsys.readouterr().err == "2 of 5 maps\n4 of 5 maps\n"
