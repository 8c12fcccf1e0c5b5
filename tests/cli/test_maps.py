from pathlib import Path

import pytest
from PIL import Image

from cli.test_dispatch import fail
from echelon_env.cli import main, maps
from echelon_env.config.scenario import make_config
from echelon_env.terrain import Recipe, Terrain, generate

SMALL = ["--scenario", "duel-open"]


@pytest.fixture(autouse=True)
def _in_a_separate_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_sheet_gets_the_next_free_name(capsys):
    for name in ("maps.png", "maps-2.png"):
        assert main(["maps", *SMALL, "--maps", "2"]) == 0
        assert capsys.readouterr().out == f"{name}: duel-open, 2 maps, seeds 0 to 1\n"
    assert Path("maps.png").read_bytes() == Path("maps-2.png").read_bytes()
    assert sorted(path.name for path in Path().iterdir()) == ["maps-2.png", "maps.png"]


@pytest.mark.parametrize("count", [1, pytest.param(64, marks=pytest.mark.slow)])
def test_sheets_are_no_wider_than_a_screen(count):
    assert main(["maps", *SMALL, "--maps", str(count), "--out", "sheet.png"]) == 0
    with Image.open("sheet.png") as sheet:
        assert sheet.format == "PNG"
        assert 600 < sheet.width <= 2400
        assert 300 < sheet.height < 4000


def test_a_sheet_with_a_map_of_each_biome(monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr(maps, "contact_sheet", lambda terrains, count, *, title: drawn.append((*terrains, count)))
    with pytest.raises(AttributeError, match="save"):
        main(["maps", *SMALL, "--seed", "3", "--biomes", "urban", "jungle"])
    ((urban, jungle, count),) = drawn
    assert (*urban.biomes, *jungle.biomes, count) == (*["urban"] * 4, *["jungle"] * 4, 2)
    assert urban.seed == jungle.seed == 3


def test_recipes_generate_the_maps_again(monkeypatch, capsys):
    monkeypatch.setattr(maps, "_REPORT_EVERY", 2)
    assert main(["maps", *SMALL, "--maps", "3", "--seed", "99", "--recipes", "pools/small"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "pools/small: recipes of duel-open, 3 maps, seeds 99 to 101\n"
    assert shown.err == "2 of 3 maps\n"
    files = sorted(Path("pools/small").iterdir())
    assert [file.name for file in files] == ["099.json", "100.json", "101.json"]
    for seed, file in enumerate(files, 99):
        terrain = Terrain.from_recipe(Recipe.from_json(file.read_text()))
        assert terrain.content_hash == generate(make_config("duel-open"), seed).content_hash
    assert main(["maps", *SMALL, "--maps", "1", "--seed", str(2**64 - 1), "--recipes", "last"]) == 0
    assert [path.name for path in Path("last").iterdir()] == [f"{2**64 - 1}.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scenario", "dule"], "did you mean 'duel'"),
        (["--biomes", "urbn"], "did you mean 'urban'"),
        (["--maps", "0"], "--maps"),
        (["--maps", "65"], "--maps: expected at most 64 on a sheet"),
        (["--maps", "100001", "--recipes", "x"], "--maps: expected at most 100,000"),
        (["--seed", str(2**64), "--maps", "1"], "--seed"),
        (["--seed", str(2**64 - 3)], "--seed"),
        (["--maps", "9", "--biomes"], "--maps: expected at most"),
        (["--recipes", "x", "--biomes"], "--recipes"),
        (["--recipes", "x", "--out", "y"], "not allowed with"),
        (["--out", "missing/maps.png"], "missing: is not a folder"),
        (["--out", "maps.jpg"], "--out: expected a name that ends in .png, got maps.jpg"),
        ([*SMALL, "--out", "kept.png"], "kept.png: exists already"),
        ([*SMALL, "--recipes", "full"], "not an empty folder"),
    ],
)
def test_bad_command_lines_are_reported_in_one_line_and_change_nothing(arguments, message, capsys):
    Path("kept.png").write_text("kept")
    Path("full").mkdir()
    Path("full/file").write_text("kept")
    assert message in fail(["maps", *arguments], capsys)
    assert sorted(map(str, Path().rglob("*"))) == ["full", "full/file", "kept.png"]
    assert Path("kept.png").read_text() == Path("full/file").read_text() == "kept"
