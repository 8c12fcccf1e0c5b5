"""The PTX of the kernels, run on the CPU, plays whole battles with the bytes of the library."""

import ctypes
import hashlib

import numpy as np
import pytest

from echelon_env import BattleEngine, opponents
from echelon_env.config.scenario import scenarios
from echelon_env.engine import _library, global_state, tick
from echelon_env.engine.state import SCRATCH
from echelon_env.opponents import scripted

pytest.importorskip("llvmlite")
pytest.importorskip("ziglang")

from native.cuda import LAUNCHES, EmitError, check_ptx, count_remainders, emit_ptx
from native.ptx import compile_c, launcher, to_c

from native import build

ENTRIES = {
    "step_range": tick.step_range,
    "pack_terrain": tick.pack_terrain,
    "begin_battle": tick.begin_battle,
    "write_global_states": global_state.write_global_states,
    "act_rows": scripted.act_rows,
}


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """The entry points that GPUs have, by name: functions that run their PTX, and the count of their threads."""
    folder, entries = tmp_path_factory.mktemp("ptx"), build.lower_all()
    assert ENTRIES.keys() == LAUNCHES.keys()
    sources = [
        to_c(emit_ptx(build.read_bitcode(name), name, entries[name]), f"echelon_{name}")
        + launcher(name, entries[name]["arguments"])
        for name in LAUNCHES
    ]
    loaded = compile_c(sources, folder)
    return {
        name: (
            _library.LibraryFunction(name, getattr(loaded, f"run_{name}"), entries[name]["arguments"]),
            ctypes.c_uint64.in_dll(loaded, f"threads_{name}"),
        )
        for name in LAUNCHES
    }


def digest(engine, *others):
    found = hashlib.sha256()
    lasting = [array for name, array in engine.state._asdict().items() if name not in SCRATCH]
    for array in (*lasting, *engine.out, engine.observations, engine.global_state(1), *others):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def digests(scenario, level, battles=3, decisions=150):
    """What battles are after every decision, some of which start anew."""
    engine = BattleEngine(scenario, battles, maps=2, max_steps=60)
    rng, rows = np.random.default_rng(5), battles * engine.num_mechs
    player = None if level is None else opponents.make(level, 3, engine.config)
    seen, found, ended = engine.reset(range(battles)), [], 0
    if player is not None:
        player.reset(np.ones(rows, np.bool_))
    for decision in range(decisions):
        if decision == 20:
            engine.restore(engine.snapshot())
        actions = rng.uniform(-1.2, 1.2, (rows, engine.action_dim)).astype(np.float32)
        if player is not None:
            actions = player.act(seen.reshape(rows, -1).copy())
        seen = engine.step(actions.reshape(battles, engine.num_mechs, -1))[0]
        found.append(digest(engine, actions))
        over = engine.battle_over
        if over.any():
            ended += int(over.sum())
            seen = engine.reset(np.arange(battles) + 1000 * (decision + 1), over)
            if player is not None:
                player.reset(np.repeat(over, engine.num_mechs))
    assert ended >= battles
    return found


pytestmark = pytest.mark.long

CASES = [
    pytest.param(
        name, level, marks=() if (name, level) in (("duel", "expert"), ("skirmish", None)) else pytest.mark.slow
    )
    for name in scenarios()
    for level in (None, "novice", "veteran", "expert")
]


@pytest.mark.parametrize(("scenario", "level"), CASES)
def test_battles_have_the_same_bytes(scenario, level, launched, monkeypatch):
    """The last thread runs first, and threads take the rows of scripted players in turn."""
    expected = digests(scenario, level)
    before = {name: threads.value for name, (_, threads) in launched.items()}
    for name, (function, _) in launched.items():
        monkeypatch.setitem(ENTRIES[name].__dict__, "_bind", function.bind)
    assert digests(scenario, level) == expected
    idle = {name for name, (_, threads) in launched.items() if threads.value == before[name]}
    assert idle == ({"act_rows"} if level is None else set())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("\tfma.rn.ftz.f32 \t%r1, %r2, %r3, %r4;", "fma.rn.ftz.f32, whose result differs"),
        (
            "\tfma.rn.f64 \t%rd1, %rd2, %rd3, %rd4;\n\tfma.rn.f64 \t%rd5, %rd2, %rd3, %rd4;",
            "more fused operations than",
        ),
        ("\tsqrt.approx.f32 \t%r1, %r2;", "sqrt.approx.f32, which is not rounded to nearest"),
        ("\t@%p3 div.full.f32 \t%r1, %r2, %r3;", "div.full.f32, which is not rounded to nearest"),
        ("\tmul.f64 \t%rd1, %rd2, %rd3;", "mul.f64, which is not rounded to nearest"),
        ("\tex2.approx.f32 \t%r1, %r2;", "ex2.approx.f32, whose result differs"),
        ("\tcall.uni (retval0), sin, (param0);", "needs a function: call.uni"),
        (".extern .func  (.param .b64 func_retval0) pow", "needs a function: .extern .func"),
    ],
)
def test_operations_with_other_results_are_refused(line, message):
    with pytest.raises(EmitError, match=message):
        check_ptx(f".visible .entry echelon_step_range(\n{line}\n", remainders=1)


def test_remainders_need_a_power_of_two():
    assert count_remainders("  %1 = frem double %.168.i, 8.000000e+00\n  %2 = frem double %x, 5.000000e-01") == 2
    for divisor in ("3.000000e+00", "%y"):
        with pytest.raises(EmitError, match="divisor is no power of two"):
            count_remainders(f"  %1 = frem double %x, {divisor}")
