"""Stage 2: bitcode to an object file for a target and a processor. Needs llvmlite only."""

from __future__ import annotations

from llvmlite import binding as llvm

OUTSIDE = {"numba_frexp"}
"""The functions that kernels may call and that the library defines itself, in support.c."""

llvm.set_option("emit", "-disable-loop-idiom-memset")  # lower.py sets it, too
# Loops that fill arrays stay loops, in the vectors of each processor. Else LLVM calls `memset`, whose code in support.c
# is for every processor: a decision of 10 v 10 fills 60 kB of observations with zeros.

FEATURES = {"x86-64-v4": "-prefer-256-bit"}
"""LLVM's features by processor, besides its own: v4 has vectors of 512 bits, not of 256."""

_INTRINSICS = {
    *("abs", "assume", "bitreverse", "bswap", "ceil", "copysign", "ctlz", "ctpop", "cttz", "experimental", "fabs"),
    *("floor", "fshl", "fshr", "lifetime", "masked", "memcpy", "memmove", "memset", "sadd", "smax", "smin", "smul"),
    *("sqrt", "ssub", "trunc", "uadd", "umax", "umin", "umul", "usub", "vector"),
}
"""LLVM's functions that are instructions, or those of support.c, on every machine.

The remainder of floats (the instruction frem) calls fmod, whose result is exact and so the same everywhere."""


class EmitError(Exception):
    """Raised for bitcode that would not give the same bytes everywhere."""


def emit(bitcode: bytes, symbol: str, export: str, triple: str, processor: str) -> bytes:
    """An object file that exports ``int32 export(const uint64 *words)``, a call of the bitcode's `symbol`.

    Nothing else is visible. Raises `EmitError` if the bitcode needs a function that the library does not define, or one
    whose results depend on the system.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=FEATURES.get(processor, ""), opt=3, reloc="pic", codemodel="default"
    )
    module = llvm.parse_bitcode(bitcode)
    wrapper = llvm.parse_assembly(_wrapper(module.get_function(symbol), symbol, export, "windows" in triple))
    wrapper.triple, wrapper.data_layout = module.triple, module.data_layout
    module.link_in(wrapper)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != export:
            value.linkage = "internal"
    module.triple, module.data_layout = triple, str(machine.target_data)
    optimise(module, machine)
    _check(module)
    data: bytes = machine.emit_object(module)
    return data


def _check(module: llvm.ModuleRef) -> None:
    for function in module.functions:
        if not function.is_declaration:
            continue
        if function.name.startswith("llvm."):
            if function.name.split(".")[1] not in _INTRINSICS:
                raise EmitError(f"a kernel needs {function.name}, which may call a C library")
        elif function.name not in OUTSIDE:
            raise EmitError(f"a kernel needs {function.name}, which the library does not define")


def _wrapper(function: llvm.ValueRef, symbol: str, export: str, windows: bool) -> str:
    """LLVM assembly of the exported function: it loads the arguments from words. Numba's first two are results."""
    types = [str(argument.type) for argument in function.arguments]
    lines = [
        "declare double @llvm.sqrt.f64(double)",
        "define double @sqrt(double %x) alwaysinline {",  # an instruction, no call of a C library
        "  %root = call double @llvm.sqrt.f64(double %x)",
        "  ret double %root",
        "}",
        f'declare i32 @"{symbol}"({", ".join(types)})',
        f'define {"dllexport " if windows else ""}i32 @"{export}"(ptr %words) {{',
        "  %result = alloca ptr",
        "  %exception = alloca ptr",
    ]
    passed = ["ptr %result", "ptr %exception"]
    for i, kind in enumerate(types[2:]):
        lines += [
            f"  %p{i} = getelementptr i64, ptr %words, i64 {i}",
            f"  %v{i} = load {kind}, ptr %p{i}, align 8",
        ]
        passed.append(f"{kind} %v{i}")
    lines += [f'  %status = call i32 @"{symbol}"({", ".join(passed)})', "  ret i32 %status", "}"]
    return "\n".join(lines)


def optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, vectors: bool = True) -> None:
    """As Numba does: a cheap round, in which the forced inlining happens, then a full one."""
    cheap = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    manager = cheap.getModulePassManager()
    manager.add_loop_rotate_pass()
    manager.add_instruction_combine_pass()
    manager.add_jump_threading_pass()
    manager.run(module, cheap)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.loop_unrolling = vectors, True
    options.slp_vectorization = False  # measured: slower
    options.inlining_threshold = 100  # of 225; measured: a hundredth faster, and a tenth smaller
    full = llvm.create_pass_builder(machine, options)
    full.getModulePassManager().run(module, full)
