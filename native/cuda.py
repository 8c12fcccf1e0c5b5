"""The same bitcode as PTX, the assembly language of NVIDIA's GPUs. Needs llvmlite only, no CUDA.

A kernel ``echelon_NAME(const uint64 *words, int first, int end)`` runs an entry point once for each number from `first`
to `end` - 1, in a thread of its own. `words` are those of the library's calls, in the GPU's memory.

Results have the same bytes as the CPU's: every operation of floats is rounded to nearest, none is approximate, and none
is fused but that of a remainder by a power of two, which is exact. `emit_ptx` refuses others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from llvmlite import binding as llvm

from native.emit import EmitError, optimise

TRIPLE = "nvptx64-nvidia-cuda"
BASE = "sm_80"
"""The oldest architecture that the PTX is for: Ampere. A driver translates it for later ones."""

PTX_VERSION = "+ptx78"
"""Of CUDA 11.8."""


ENTRIES = ("load_maps", "play_range", "find_possibilities", "write_global_states")
"""The entry points that GPUs run, for a range of battles or of their parts. Networks are left to torch, and scripted
players to the CPU: their branches differ from row to row, so a GPU would run few rows of 32 at a time."""

ONLY = {"load_maps", "play_range"}
"""Those that no other target has."""

_EXACT = {"add", "div", "mul", "rcp", "sqrt", "sub"}
"""Operations of floats that have a rounding, which must be to the nearest."""

_SUPPORT = """
declare double @llvm.sqrt.f64(double)
define double @sqrt(double %x) alwaysinline {
  %root = call double @llvm.sqrt.f64(double %x)
  ret double %root
}
define double @numba_frexp(double %x, ptr %exponent) alwaysinline {
  %bits = bitcast double %x to i64
  %high = lshr i64 %bits, 52
  %masked = and i64 %high, 2047
  %biased = trunc i64 %masked to i32
  %zero = icmp eq i32 %biased, 0
  %infinite = icmp eq i32 %biased, 2047
  %special = or i1 %zero, %infinite
  %unbiased = sub i32 %biased, 1022
  %found = select i1 %special, i32 0, i32 %unbiased
  store i32 %found, ptr %exponent
  %mantissa = and i64 %bits, -9218868437227405313
  %halved = or i64 %mantissa, 4602678819172646912
  %half = bitcast i64 %halved to double
  %result = select i1 %special, double %x, double %half
  ret double %result
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
"""
"""What `support.c` and the wrappers of other targets define, as LLVM assembly."""


def emit_ptx(
    read_bitcode: Callable[[str], bytes], described: Mapping[str, Mapping[str, Any]], processor: str = BASE
) -> str:
    """The PTX of `ENTRIES`, given their bitcode and the descriptions that `lower` writes.

    Raises `EmitError` for an operation whose result could differ from the CPU's, and for a function that is missing.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=processor, features=PTX_VERSION, opt=3)
    module = llvm.parse_bitcode(read_bitcode(ENTRIES[0]))
    for name in ENTRIES[1:]:
        module.link_in(llvm.parse_bitcode(read_bitcode(name)))
    texts = [_SUPPORT]
    for name in ENTRIES:
        symbol = described[name]["symbol"]
        texts.append(_wrapper(module.get_function(symbol), name, symbol, described[name]["arguments"]))
    wrappers = llvm.parse_assembly("\n".join(texts))
    wrappers.triple, wrappers.data_layout = module.triple, module.data_layout
    module.link_in(wrappers)
    kernels = {f"echelon_{name}" for name in ENTRIES}
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in kernels:
            value.linkage = "internal"
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    optimise(module, machine, vectors=False)
    remainders = count_remainders(str(module))
    text: str = machine.emit_assembly(module)
    check_ptx(text, remainders)
    return text


def argument_words(arguments: Mapping[str, Any]) -> dict[str, range]:
    """The words of each argument of a description."""
    words, at = {}, 0
    for name, described in arguments.items():
        count = sum(_lengths(described))
        words[name] = range(at, at + count)
        at += count
    return words


def _lengths(described: Any) -> Iterator[int]:
    """The number of words of each number and array in an argument."""
    if isinstance(described, str):
        yield 1
    elif "dtype" in described:
        yield 5 + 2 * int(described["axes"])
    else:
        for each in described["fields"].values():
            yield from _lengths(each)


def _wrapper(function: llvm.ValueRef, name: str, symbol: str, arguments: Mapping[str, Any]) -> str:
    """LLVM assembly of the kernel. Numba's first two arguments are results."""
    types = [str(argument.type) for argument in function.arguments]
    words = argument_words(arguments)
    given = {words["first"].start: "%number", words["last"].start: "%next"}
    lines = [
        f'declare i32 @"{symbol}"({", ".join(types)})',
        f"define ptx_kernel void @echelon_{name}(ptr noalias readonly %words, i32 %first, i32 %end) {{",
        "  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        "  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()",
        "  %before = mul i32 %block, %size",
        "  %place = add i32 %before, %thread",
        "  %here = add i32 %first, %place",
        "  %number = sext i32 %here to i64",
        "  %next = add i64 %number, 1",
        "  %within = icmp slt i32 %here, %end",
        "  br i1 %within, label %run, label %done",
        "run:",
        "  %result = alloca ptr",
        "  %exception = alloca ptr",
    ]
    passed = ["ptr %result", "ptr %exception"]
    for i, kind in enumerate(types[2:]):
        if i in given:
            passed.append(f"{kind} {given[i]}")
            continue
        lines += [f"  %p{i} = getelementptr i64, ptr %words, i64 {i}", f"  %v{i} = load {kind}, ptr %p{i}, align 8"]
        passed.append(f"{kind} %v{i}")
    lines += [f'  %status = call i32 @"{symbol}"({", ".join(passed)})', "  br label %done", "done:", "  ret void", "}"]
    return "\n".join(lines)


def count_remainders(assembly: str) -> int:
    """The number of remainders of floats. Raises EmitError for a divisor that is no constant power of two."""
    lines = re.findall(r"frem .*", assembly)
    for line in lines:
        found = re.fullmatch(r"frem (?:\w+ )*double %?[\w.]+, ([-+.\de]+)", line.strip())
        mantissa = float(found[1]).hex() if found else ""
        if not re.fullmatch(r"0x1\.0+p[+-]\d+", mantissa):
            raise EmitError(f"a kernel has a remainder whose divisor is no power of two: {line}")
    return len(lines)


def check_ptx(text: str, remainders: int) -> None:
    """Raise EmitError for PTX that calls functions, or computes with floats in another way than the CPU.

    Each of the remainders may have one fused operation.
    """
    if calls := re.findall(r"\bcall\b.*|^\.extern .*", text, re.MULTILINE):
        raise EmitError(f"a kernel needs a function: {calls[0]}")
    operations = re.findall(r"^\s+(?:@!?%p\d+ )?([a-z]\w*\.[\w.]*f(?:32|64))\b", text, re.MULTILINE)
    if sum(operation.startswith("fma.") for operation in operations) > remainders:
        raise EmitError(f"a kernel has more fused operations than remainders, {remainders}")
    for operation in set(operations):
        name, *parts = operation.split(".")
        if name in _EXACT and parts[0] != "rn":
            raise EmitError(f"a kernel needs {operation}, which is not rounded to nearest")
        if {"approx", "ftz", "full"} & set(parts) or name in {"cos", "ex2", "lg2", "rsqrt", "sin", "tanh"}:
            raise EmitError(f"a kernel needs {operation}, whose result differs from the CPU's")
