"""PTX as C, so that what a GPU would do runs on a CPU: each kernel is a function of the number of its thread.

Registers hold bits, whose type each instruction says. Where PTX differs from C, PTX counts: shifts by too much give 0,
conversions to integers saturate, the maximum of a number and NaN is the number, and zeros have an order. It has what
LLVM writes for the kernels of `cuda.ENTRIES`, and refuses other instructions. NVIDIA, "Parallel Thread Execution ISA".
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

HEAD = r"""
#include <stdint.h>
#include <string.h>
#include <math.h>
typedef uint64_t u64; typedef int64_t s64; typedef uint32_t u32; typedef int32_t s32;
typedef uint16_t u16; typedef int16_t s16; typedef uint8_t u8; typedef int8_t s8;
#define INLINE static inline __attribute__((always_inline))
INLINE double f64(u64 x) { double d; memcpy(&d, &x, 8); return d; }
INLINE float f32(u32 x) { float d; memcpy(&d, &x, 4); return d; }
INLINE u64 bits64(double d) { u64 x; memcpy(&x, &d, 8); return x; }
INLINE u32 bits32(float d) { u32 x; memcpy(&x, &d, 4); return x; }
INLINE s64 to_s64(double d) {
    if (d != d) return INT64_MIN;
    return d >= 0x1p63 ? INT64_MAX : d < -0x1p63 ? INT64_MIN : (s64)d;
}
INLINE s32 to_s32(double d) {
    if (d != d) return INT32_MIN;
    return d >= 0x1p31 ? INT32_MAX : d <= -0x1p31 - 1 ? INT32_MIN : (s32)d;
}
INLINE double largest(double a, double b) {
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
INLINE double smallest(double a, double b) {
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
"""

_ORDER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INVERSE = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%"}
_BITWISE = {"and": "&", "or": "|", "xor": "^"}
_ROUNDING = {"rmi": "floor", "rpi": "ceil", "rzi": "trunc"}
_REGISTERS = {"p": "u8", "rs": "u16", "r": "u32", "rd": "u64"}
_SPECIAL = {"%tid.x": "tid", "%ctaid.x": "ctaid", "%ntid.x": "ntid", "%SP": "SP", "%SPL": "SPL"}


class PtxError(Exception):
    """Raised for PTX that the translation does not know."""


def to_c(text: str, kernel: str) -> str:
    """C of ``void KERNEL(u64 words, u32 first, u32 end, u32 tid, u32 ctaid, u32 ntid)`` for a kernel without calls.

    Compile it with ``-ffp-contract=off`` (nothing fused) and ``-fno-strict-aliasing``. Raises `PtxError`.
    """
    tables = "".join(
        f"static const u8 {_name(name)}[{size}] __attribute__((aligned({aligned}))) = {{{numbers}}};\n"
        for aligned, name, size, numbers in re.findall(
            r"^\.global \.align (\d+) \.b8 (\S+)\[(\d+)\] = {(.*)};", text, re.M
        )
    )
    body = text[text.index("\n{\n", text.index(f".entry {kernel}(")) + 3 :]
    body = body[: body.index("\n}")]
    lines = [line for line in (line.split("//")[0].strip() for line in body.split("\n")) if line]
    parameters = "u64 param_0, u32 param_1, u32 param_2, u32 tid, u32 ctaid, u32 ntid"
    return f"{HEAD}\n{tables}\nvoid {kernel}({parameters}) {{\n" + "\n".join(map(_statement, lines)) + "\n}\n"


def _statement(line: str) -> str:
    """The C of a line: a declaration, a label, or an instruction and perhaps its condition."""
    line = line.rstrip(";")
    if line.startswith(".pragma"):
        return ""
    if found := re.fullmatch(r"\.reg \.\w+\s+%(\w+)<(\d+)>", line):
        return f"{_REGISTERS[found[1]]} " + ", ".join(f"{found[1]}{i} = 0" for i in range(int(found[2]))) + ";"
    if line.startswith(".reg"):
        return f"u64 {line.split('%')[1]};"
    if found := re.fullmatch(r"\.local \.align (\d+) \.b8\s+(\w+)\[(\d+)\]", line):
        return f"__attribute__((aligned({found[1]}))) u8 {found[2]}[{found[3]}];"
    if found := re.fullmatch(r"\$(\w+):", line):
        return f"{found[1]}:;"
    condition = ""
    if found := re.match(r"@(!?)%(p\d+)\s+(.*)", line):
        condition, line = f"if ({found[1]}{found[2]}) ", found[3]
    operation, _, rest = line.replace("\t", " ").partition(" ")
    return condition + _instruction(operation, rest.strip())


def _instruction(operation: str, rest: str) -> str:
    name = operation.split(".")[0]
    if name == "bra":
        return f"goto {rest.replace('$', '')};"
    if name == "ret":
        return "return;"
    if name in ("ld", "st"):
        return _load(operation, rest) if name == "ld" else _store(operation, rest)
    target, *sources = _operands(rest)
    kind, expression = _expression(operation, sources)
    converted = {"f64": f"bits64({expression})", "f32": f"bits32({expression})", "pred": expression}
    return f"{target[1:]} = {converted.get(kind, f'({_c_type(kind)})({expression})')};"


def _name(symbol: str) -> str:
    return symbol.replace("$", "_")


def _operands(rest: str) -> list[str]:
    return [each.strip() for each in re.split(r",(?![^{\[]*[}\]])", rest)]


def _value(operand: str, kind: str) -> str:
    """An operand as C of a type: a register, a number, or the address of local memory."""
    if re.fullmatch(r"%(?:rd|rs|r|p)\d+", operand):
        text = operand[1:]
    elif operand in _SPECIAL:
        return _SPECIAL[operand]
    elif operand.startswith(("0d", "0f")):
        text = f"0x{operand[2:]}u" + ("ll" if operand[1] == "d" else "")
    elif re.match(r"[A-Za-z_]", operand):  # local memory, or a table
        return f"(u64){_name(operand)}"
    else:
        text = "INT64_MIN" if operand == "-9223372036854775808" else f"{operand}ll"
    if kind in ("f64", "f32"):
        return f"{kind}({text})"
    return text if kind == "pred" else f"({_c_type(kind)})({text})"


def _c_type(kind: str) -> str:
    """The C type of integers and bits; floats' bits are unsigned."""
    return f"{'s' if kind[0] == 's' else 'u'}{kind[1:]}"


def _bits(kind: str) -> str:
    return f"b{kind[1:]}"


def _unsigned(kind: str) -> str:
    return f"u{kind[1:]}"


def _expression(operation: str, sources: Sequence[str]) -> tuple[str, str]:
    """The type of an instruction's result, and its C."""
    name, *parts = operation.split(".")
    kind = parts[-1]
    of = [_value(each, kind) for each in sources]
    if name in ("mov", "cvta"):
        kind = "u64" if name == "cvta" else kind
        return (kind if kind == "pred" else _bits(kind)), _value(sources[0], kind if kind == "pred" else _bits(kind))
    if name in _ARITHMETIC:
        return _arithmetic(name, parts, sources)
    if name == "mad":
        first, second, third = (_value(each, _unsigned(kind)) for each in sources)
        return _unsigned(kind), f"{first} * {second} + {third}"
    if name in ("fma", "sqrt"):
        return kind, f"{name}({', '.join(of)})"
    if name == "rcp":
        return kind, f"1.0 / {of[0]}"
    if name in ("neg", "abs", "copysign") and kind[0] == "f":
        c_name = {"abs": "fabs", "copysign": "copysign"}.get(name, "")
        return kind, f"-{of[0]}" if name == "neg" else f"{c_name}({', '.join(reversed(of))})"
    if name == "neg":
        return _unsigned(kind), f"0 - {_value(sources[0], _unsigned(kind))}"
    if name == "abs":
        return kind, f"{of[0]} < 0 ? 0 - {_value(sources[0], _unsigned(kind))} : {_value(sources[0], _unsigned(kind))}"
    if name in ("min", "max") and kind == "f64":
        return kind, f"{'smallest' if name == 'min' else 'largest'}({of[0]}, {of[1]})"
    if name in ("min", "max") and kind[0] != "f":
        return kind, f"{of[0]} {'<' if name == 'min' else '>'} {of[1]} ? {of[0]} : {of[1]}"
    if name in _BITWISE:
        return kind, f"{of[0]} {_BITWISE[name]} {of[1]}"
    if name == "not":
        return kind, f"{'!' if kind == 'pred' else '~'}{of[0]}"
    if name in ("shl", "shr"):
        return _shift(name, kind, sources)
    if name == "clz":
        return "u32", f"{of[0]} ? __builtin_clz{'ll' if kind == 'b64' else ''}({of[0]}) : {kind[1:]}"
    if name == "setp":
        return "pred", _comparison(parts[0], kind, of[0], of[1])
    if name == "selp":
        return _bits(kind), f"{_value(sources[2], 'pred')} ? " + " : ".join(_value(x, _bits(kind)) for x in sources[:2])
    if name == "cvt":
        return _conversion(parts, sources[0])
    raise PtxError(f"unknown instruction {operation} {', '.join(sources)}")


def _arithmetic(name: str, parts: Sequence[str], sources: Sequence[str]) -> tuple[str, str]:
    kind, sign = parts[-1], _ARITHMETIC[name]
    first, second = (_value(each, kind) for each in sources)
    if kind[0] == "f":
        if parts != ["rn", kind]:
            raise PtxError(f"unknown rounding: {name}.{'.'.join(parts)}")
        return kind, f"{first} {sign} {second}"
    if name == "mul" and parts[0] in ("wide", "hi"):
        width = int(kind[1:])
        large = f"{'' if kind[0] == 's' else 'unsigned '}__int128"
        product = f"({large}){first} * ({large}){second}"
        return (f"{kind[0]}{2 * width}", product) if parts[0] == "wide" else (kind, f"({product}) >> {width}")
    if name in ("div", "rem"):
        return kind, f"{first} {sign} {second}"
    first, second = (_value(each, _unsigned(kind)) for each in sources)  # signed overflow is no C
    return _unsigned(kind), f"{first} {sign} {second}"


def _shift(name: str, kind: str, sources: Sequence[str]) -> tuple[str, str]:
    width, count = int(kind[1:]), _value(sources[1], "u32")
    if kind[0] == "s":
        return kind, f"{_value(sources[0], kind)} >> ({count} >= {width} ? {width - 1} : {count})"
    value = _value(sources[0], _unsigned(kind))
    return _unsigned(kind), f"{count} >= {width} ? 0 : {value} {'<<' if name == 'shl' else '>>'} ({count})"


def _comparison(order: str, kind: str, first: str, second: str) -> str:
    if kind[0] != "f":
        return f"{first} {_ORDER[order]} {second}"
    if order == "nan":
        return f"({first} != {first} || {second} != {second})"
    if order == "num":
        return f"({first} == {first} && {second} == {second})"
    if order == "ne":  # ordered: false for NaN
        return f"({first} < {second} || {first} > {second})"
    if order in _ORDER:
        return f"{first} {_ORDER[order]} {second}"
    if order == "equ":
        return f"!({first} < {second} || {first} > {second})"
    return f"!({first} {_ORDER[_INVERSE[order[:-1]]]} {second})"


def _conversion(parts: Sequence[str], source: str) -> tuple[str, str]:
    rounding, to, start = parts[0], parts[-2], parts[-1]
    value = _value(source, start)
    if to[0] != "f" and start[0] != "f":
        return to, value
    if start[0] != "f" or (to[0] == "f" and rounding not in _ROUNDING):
        return to, f"({'double' if to == 'f64' else 'float'}){value}"
    if to[0] == "f":
        return to, f"{_ROUNDING[rounding]}({value})"
    if rounding != "rzi" or to not in ("s32", "s64"):
        raise PtxError(f"unknown conversion cvt.{'.'.join(parts)}")
    return to, f"to_{to}({value})"


def _address(operand: str) -> str:
    base, _, offset = operand.strip("[]").partition("+")
    return f"{_value(base, 'u64')} + ({offset or 0}ll)"


def _vector(operand: str) -> list[str]:
    return [each.strip() for each in operand.strip("{} ").split(",")]


def _load(operation: str, rest: str) -> str:
    target, source = _operands(rest)
    if ".param" in operation:
        return f"{target[1:]} = param_{source.strip('[]').rpartition('_')[2]};"
    kind, registers = operation.split(".")[-1], _vector(target)
    size = int(kind[1:]) // 8
    loads = []
    for i, register in enumerate(registers):
        width = _REGISTERS[re.sub(r"\d+", "", register[1:])][1:]
        wide = f"{_c_type(kind)[0]}{width}"  # signed numbers are extended
        loads.append(
            f"{{ {_c_type(kind)} v; memcpy(&v, (void *)(at + {i * size}), {size}); into{i} = (u64)({wide})v; }}"
        )
    declared = ", ".join(f"into{i}" for i in range(len(registers)))
    copies = " ".join(f"{register[1:]} = into{i};" for i, register in enumerate(registers))
    return f"{{ u64 at = {_address(source)}, {declared}; {' '.join(loads)} {copies} }}"


def _store(operation: str, rest: str) -> str:
    target, source = _operands(rest)
    kind = operation.split(".")[-1]
    size, c_type = int(kind[1:]) // 8, _c_type(_bits(kind))
    stores = (
        f"{{ {c_type} v = {_value(each, _bits(kind))}; memcpy((void *)(at + {i * size}), &v, {size}); }}"
        for i, each in enumerate(_vector(source))
    )
    return f"{{ u64 at = {_address(target)}; {' '.join(stores)} }}"


BLOCK = 32
"""Threads of a block."""


def launch_c(name: str) -> str:
    """C of ``void launch_NAME(u64 words, u32 first, u32 end)``: all threads of a launch, the last one first."""
    return f"""
void launch_{name}(u64 words, u32 first, u32 end) {{
    for (s64 block = ((s64)end - first + {BLOCK - 1}) / {BLOCK} - 1; block >= 0; block--)
        for (int thread = {BLOCK - 1}; thread >= 0; thread--)
            echelon_{name}(words, first, end, thread, block, {BLOCK});
}}
"""


OPTIONS = (
    "-O0", "-fno-inline", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-sanitize=all", "-fPIC", "-shared",
)  # fmt: skip
"""Of the compiler. With inlining a minute passes, and the code runs fast enough without."""


def compile_kernels(text: str, names: Sequence[str], folder: Path) -> Callable[[str, int, int], None]:
    """What runs kernels of PTX on the CPU, given a name, the address of the argument words, and the number of threads.

    The library is made in a folder, with Zig's compiler.
    """
    files = [folder / f"{name}.c" for name in names]
    for name, file in zip(names, files, strict=True):
        file.write_text(to_c(text, f"echelon_{name}") + launch_c(name))
    library = folder / "ptx.so"
    command = [sys.executable, "-m", "ziglang", "cc", *OPTIONS, *map(str, files), "-lm", "-o", str(library)]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))

    def run(name: str, words: int, count: int) -> None:
        loaded[f"launch_{name}"](ctypes.c_uint64(words), ctypes.c_uint32(0), ctypes.c_uint32(count))

    return run
