"""What PTX may have. `tests/gpu` runs it."""

import pytest

pytest.importorskip("llvmlite")
pytest.importorskip("torch")

from native.cuda import ENTRIES, EmitError, check_ptx, count_remainders

from echelon_env.engine.kernels import gpu_code
from echelon_env.gpu.memory import KERNELS


def test_the_package_has_the_kernels():
    assert set(ENTRIES) == set(KERNELS)
    for name in KERNELS:
        assert f".entry echelon_{name}(" in gpu_code()


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
