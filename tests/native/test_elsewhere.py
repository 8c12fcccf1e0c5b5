"""Whole battles of scripted players have the same bytes in WebAssembly, run by Node, and on aarch64, run by QEMU."""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from native.targets import TARGETS

from campaigns.fuzz_battles import valid_config
from echelon_env import BattleEngine, make_config, scenario_names
from echelon_env.champions import champion_folder, champion_of
from echelon_env.config.skill import LEVELS
from echelon_env.engine.kernels import browser_module
from echelon_env.engine.state import BATTLE
from echelon_env.engine.tick import DECIDE, PERCEIVE
from echelon_env.layout.parts import CHOICES
from echelon_env.networks.checkpoint import read_checkpoint
from echelon_env.networks.forward import SAMPLED, act_by_network, prepare_network
from echelon_env.networks.weights import load_network
from echelon_env.opponents.knowledge import make_knowledge
from echelon_env.opponents.memory import MEMORY, PLAN, allocate_scratch
from echelon_env.opponents.scripted import ScriptedRows
from echelon_env.replays.image import MemoryImage
from oracles.configs import ALL_OFF

SEED = 7

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """The kernels as a file for Node."""
    path = tmp_path_factory.mktemp("wasm") / "echelon.wasm"
    path.write_bytes(browser_module())
    return path


def lasting(engine):
    columns = (getattr(engine.state, name) for name in ("opaque", "solid", "hazard", "blocks"))
    return [*engine._lasting_arrays().values(), *columns, engine.observations]


def network_arguments(engine):
    """Arguments of `act_by_network` with which the champion plays all mechs of a battle."""
    stored = read_checkpoint(champion_folder(champion_of(engine.config)))
    network, rows = load_network(stored.network, stored.tensors), engine.num_mechs
    return (
        *(*prepare_network(network, engine.config), SAMPLED, np.zeros(1, np.int64)),
        *(engine.observations[0], np.zeros((rows, 2, stored.network.width)), np.arange(rows, dtype=np.uint64)),
        *(np.zeros(rows, np.int64), engine.actions[0]),
        *(np.zeros((rows, CHOICES), np.float32), np.zeros((rows, CHOICES), np.bool_), 0),
    )


def prepare(engine, levels, base):
    """The memory before a battle begins, and the calls that play it; without levels, a network plays."""
    image = MemoryImage(base)
    starter, begin = engine._starter, engine._starter.begin

    def call(name, *arguments):
        return [name, image.words(*arguments)]

    def capture(*arguments):
        job["begin"] = [call("begin_battle", *starter.constants, *arguments)]
        begin(*arguments)

    job = {"base": base}
    starter.begin = capture
    engine.reset([SEED])
    observations, actions = engine.observations[0], engine.actions[0]
    arrays = engine.observation_rows
    for array in (*engine.out, arrays.array):
        image.place(array, np.zeros_like(array))
    alone = np.zeros(1, np.int64)
    step = engine.tables, engine.state, engine.actions, engine.out, alone, arrays.places, arrays.array, 0, 1, 0
    job["begin"].append(call("step_range", *step, int(PERCEIVE)))
    if levels is None:
        act = call("act_by_network", *network_arguments(engine))
    else:
        memories = np.zeros(len(levels), MEMORY)
        memories["seed"] = SEED
        skills = np.concatenate([skill.record() for skill in LEVELS.values()])
        known = make_knowledge(engine.config), skills, allocate_scratch(), np.zeros(1, PLAN)
        act = call("act_rows", *known, alone, levels, observations, memories, actions, 0)
    job["decide"] = [act, call("step_range", *step, int(DECIDE))]
    job["clear"] = [[image.place(actions), actions.nbytes]]
    job["read"] = [[image.place(array), array.nbytes] for array in lasting(engine) if array is not engine._started]
    job["over"] = image.place(engine.state.battles) + BATTLE.fields["over"][1]
    return job, image.to_bytes()


def play(engine, levels):
    """The same battle here: decisions, and a digest of what `prepare` reads."""
    digest, decisions = hashlib.sha256(), 0
    if levels is None:
        arguments = network_arguments(engine)
    else:
        players = ScriptedRows(SEED, engine.config)
        players.allocate(len(levels))

    def read():
        for array in lasting(engine):
            if array is not engine._started:
                digest.update(array.tobytes())

    engine.reset([SEED])
    read()
    while not engine.battle_over[0]:
        if levels is None:
            act_by_network(*arguments)
            engine.step(engine.actions.copy())
        else:
            engine.step(players.act(engine.observations[0].copy(), levels)[None])
        read()
        decisions += 1
    return decisions, digest.hexdigest()


CONFIGS = {
    **{name: make_config(name) for name in ("duel", "skirmish", "battle", "company")},
    "disabled": make_config("skirmish", abilities=ALL_OFF),
    **{f"random {seed}": valid_config(np.random.default_rng(seed)) for seed in range(3)},
}


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.parametrize(
    ("name", "network"), [*((name, False) for name in CONFIGS), ("duel", True), ("company", True), ("random 0", True)]
)
def test_a_battle_in_webassembly_has_the_same_bytes(module, tmp_path, name, network):
    engine = BattleEngine(CONFIGS[name])
    levels = None if network else np.arange(engine.num_mechs) % len(LEVELS)
    job, image = prepare(engine, levels, 1 << 21)
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / "image.bin").write_bytes(image)
    script = Path(__file__).with_name("battle.mjs")
    files = [script, module, tmp_path / "job.json", tmp_path / "image.bin"]
    result = subprocess.run(["node", *map(str, files)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    decisions, digest = play(BattleEngine(CONFIGS[name]), levels)
    assert decisions > 20 or name not in scenario_names()
    assert (found["decisions"], found["digest"]) == (decisions, digest)
    print(f"{name}: {decisions} decisions, {found['microseconds']:.0f} us each")


FUNCTIONS = "act_rows", "begin_battle", "step_range"  # as in battle.c


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """battle.c and the entry points for aarch64, statically linked."""
    from native.build import HERE, lower_all, read_bitcode
    from native.emit import emit

    folder, entries, target = tmp_path_factory.mktemp("aarch64"), lower_all(), TARGETS["linux-aarch64"]
    objects = [folder / f"{name}.o" for name in FUNCTIONS]
    for name, path in zip(FUNCTIONS, objects, strict=True):
        bitcode, symbol = read_bitcode(name), entries[name]["symbol"]
        path.write_bytes(emit(bitcode, symbol, f"echelon_{name}", target.triple, target.levels[0][0]))
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", "-static", "-O1"]
    command += [f"-D{name.upper()}=echelon_{name}" for name in FUNCTIONS]
    sources = [Path(__file__).with_name("battle.c"), HERE / "support.c", *objects]
    subprocess.run([*command, "-fno-builtin", *map(str, sources), "-o", str(folder / "battle")], check=True)
    return folder / "battle"


@pytest.mark.skipif(shutil.which("qemu-aarch64") is None, reason="Debian's qemu-user is not installed")
@pytest.mark.parametrize("scenario", ["duel", "skirmish"])
def test_a_battle_on_aarch64_has_the_same_bytes(program, tmp_path, scenario):
    engine = BattleEngine(scenario)
    levels = np.arange(engine.num_mechs) % len(LEVELS)
    job, image = prepare(engine, levels, 1 << 32)
    (tmp_path / "image.bin").write_bytes(image)
    lists = [[[FUNCTIONS.index(name), words] for name, words in job[key]] for key in ("begin", "decide")]
    numbers = [job["base"], job["over"]]
    for pairs in (*lists, job["clear"], job["read"]):
        numbers += [len(pairs), *(number for pair in pairs for number in pair)]
    command = ["qemu-aarch64", str(program), str(tmp_path / "image.bin")]
    given = " ".join(map(str, numbers)).encode()
    result = subprocess.run(command, input=given, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    decisions, digest = play(BattleEngine(scenario), levels)
    assert decisions > 20
    assert hashlib.sha256(result.stdout).hexdigest() == digest


def test_the_module_is_small(module):
    assert len(gzip.compress(module.read_bytes())) < 150_000
