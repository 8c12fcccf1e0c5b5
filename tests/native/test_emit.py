"""Stage 2 of the build on small pieces of LLVM assembly. Numba brings llvmlite."""

import ctypes
import platform
import sys

import pytest
from llvmlite import binding as llvm
from native.build import link
from native.emit import EmitError, emit
from native.targets import TARGETS

ADD = """
define i32 @add(ptr %result, ptr %exception, i64 %first, double %second, ptr %out) {
  %converted = sitofp i64 %first to double
  %sum = fadd double %converted, %second
  store double %sum, ptr %out
  ret i32 0
}
"""


def bitcode(text):
    return llvm.parse_assembly(text).as_bitcode()


@pytest.mark.parametrize(
    "call",
    [
        "double @llvm.sin.f64(double %x)",
        "double @llvm.exp10.f64(double %x)",
        "double @llvm.fma.f64(double %x, double %x, double %x)",
    ],
)
def test_a_function_whose_bits_differ_between_systems_is_refused(call):
    types = call.replace(" %x", "")
    text = f"""
    declare {types}
    define i32 @kernel(ptr %result, ptr %exception, double %x, ptr %out) {{
      %y = call {call}
      store double %y, ptr %out
      ret i32 0
    }}
    """
    with pytest.raises(EmitError, match="may call a C library"):
        emit(bitcode(text), "kernel", "exported", TARGETS["linux-x86_64"].triple, "x86-64-v2")


@pytest.mark.parametrize("level", [level for level, _ in TARGETS["linux-x86_64"].levels])
def test_loops_that_fill_arrays_call_no_function(level):
    text = """
    define i32 @kernel(ptr %result, ptr %exception, i64 %count, ptr %out) {
    entry:
      br label %loop
    loop:
      %i = phi i64 [0, %entry], [%next, %loop]
      %place = getelementptr float, ptr %out, i64 %i
      store float 0.0, ptr %place
      %next = add nuw nsw i64 %i, 1
      %again = icmp slt i64 %next, %count
      br i1 %again, label %loop, label %end
    end:
      ret i32 0
    }
    """
    assert b"memset" not in emit(bitcode(text), "kernel", "exported", TARGETS["linux-x86_64"].triple, level)


def test_a_function_that_the_library_does_not_define_is_refused():
    text = """
    declare i32 @PyErr_Occurred()
    define i32 @kernel(ptr %result, ptr %exception) {
      %status = call i32 @PyErr_Occurred()
      ret i32 %status
    }
    """
    with pytest.raises(EmitError, match="PyErr_Occurred, which the library does not define"):
        emit(bitcode(text), "kernel", "exported", TARGETS["linux-x86_64"].triple, "x86-64-v2")


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_every_target_has_an_object_for_each_level(target):
    magic = {"linux": b"\x7fELF", "darwin": b"\xcf\xfa\xed\xfe", "windows": b"\x64\x86"}
    for level, _ in target.levels:
        assert emit(bitcode(ADD), "add", "exported", target.triple, level).startswith(
            magic[target.name.partition("-")[0]]
        )


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the only machine on which a library has run"
)
def test_a_linked_function_reads_its_words(tmp_path):
    target = TARGETS["linux-x86_64"]
    (tmp_path / "add.o").write_bytes(emit(bitcode(ADD), "add", "exported", target.triple, "x86-64-v2"))
    library = tmp_path / target.library
    link(target, [tmp_path / "add.o"], library)
    out = ctypes.c_double()
    words = (ctypes.c_uint64 * 3)(-2 % 2**64, 0x3FF8000000000000, ctypes.addressof(out))  # 1.5
    assert ctypes.CDLL(str(library)).exported(words) == 0
    assert out.value == -0.5
    assert b"libc." not in library.read_bytes()
