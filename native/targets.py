"""The machines that the library is built for."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """A system and a kind of processor."""

    name: str  # as `echelon_env.engine._library.machine` says it
    triple: str  # for LLVM
    linker: tuple[str, ...]  # arguments of `zig cc`
    library: str  # name of the file
    levels: tuple[tuple[str, int], ...]  # LLVM's processors, each with the least `echelon_level` that it needs
    tags: tuple[str, ...]  # platform tags of the wheel


_ALONE = ("-nostdlib", "-Wl,-z,defs")  # no libc: it works with any
TARGETS = {
    target.name: target
    for target in (
        Target(
            name="linux-x86_64",
            triple="x86_64-unknown-linux-gnu",
            linker=("-target", "x86_64-linux-gnu", *_ALONE),
            library="echelon.so",
            levels=(("x86-64-v2", 2), ("x86-64-v3", 3), ("x86-64-v4", 4)),
            tags=("manylinux_2_17_x86_64", "musllinux_1_1_x86_64"),
        ),
        Target(
            name="linux-aarch64",
            triple="aarch64-unknown-linux-gnu",
            linker=("-target", "aarch64-linux-gnu", *_ALONE),
            library="echelon.so",
            levels=(("generic", 0),),
            tags=("manylinux_2_17_aarch64", "musllinux_1_1_aarch64"),
        ),
        Target(
            name="darwin-aarch64",
            triple="arm64-apple-macosx11.0.0",
            linker=("-target", "aarch64-macos.11.0", "-Wl,-install_name,@rpath/echelon.dylib"),
            library="echelon.dylib",
            levels=(("apple-m1", 0),),
            tags=("macosx_11_0_arm64",),
        ),
        Target(
            name="windows-x86_64",
            triple="x86_64-pc-windows-gnu",
            linker=("-target", "x86_64-windows-gnu"),
            library="echelon.dll",
            levels=(("x86-64-v2", 2), ("x86-64-v3", 3), ("x86-64-v4", 4)),
            tags=("win_amd64",),
        ),
    )
}
"""By name."""
