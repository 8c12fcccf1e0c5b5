"""Everything that a release needs, tried before it is published; `make release-check` runs it.

It builds the source archive and the wheels of all machines in `build/release`, checks them, and plays with those that
this machine can install, each in a fresh virtual environment. It stops at the first thing that is wrong.
"""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "release"
PACKAGES = ("echelon_env", "echelon_train")
MAGIC = {"linux": b"\x7fELF", "darwin": b"\xcf\xfa\xed\xfe", "windows": b"MZ"}
"""The first bytes of a library, by the system of its target."""
MAX_WHEEL = 10_000_000
"""Bytes; a wheel is small enough to be downloaded in every notebook session."""

WITHOUT_CODE = """
import echelon_env
try:
    echelon_env.BattleEngine("duel")
except echelon_env.BackendError as error:
    assert "jit" in str(error), error
else:
    raise SystemExit("a wheel without machine code played a battle without the extra jit")
"""
WITH_JIT = """
import echelon_env
engine = echelon_env.BattleEngine("duel")
assert echelon_env.backend().name == "jit", echelon_env.backend()
assert engine.reset([1]).any()
"""

sys.path.insert(0, str(ROOT))
from native.targets import TARGETS, Target  # noqa: E402

from echelon_env.engine._library import machine  # noqa: E402


def check_sources() -> str:
    """The version, which all files agree on, of a work tree without changes. Raises SystemExit."""
    changed = run("git", "status", "--porcelain", cwd=ROOT)
    if changed:
        raise SystemExit(f"expected a work tree without changes, got\n{changed}")
    version = check_texts()
    tags = [tag for tag in run("git", "tag", "--points-at", "HEAD", cwd=ROOT).split() if tag.startswith("v")]
    if any(tag != f"v{version}" for tag in tags):
        raise SystemExit(f"expected the tag v{version}, as pyproject.toml says, got {', '.join(tags)}")
    return version


def check_texts() -> str:
    """The version of pyproject.toml, which the citation and the changelog agree with. Raises SystemExit."""
    version = str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    if f"\nversion: {version}\n" not in (ROOT / "CITATION.cff").read_text():
        raise SystemExit(f"CITATION.cff: expected version {version}, that of pyproject.toml")
    sections = re.split("^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    heading, *lines = sections[1].splitlines() if len(sections) > 1 else [""]
    date = re.compile(r" \(\d{4}-\d\d-\d\d\)$")
    right = heading == "Unreleased" if ".dev" in version else date.search(heading) and date.sub("", heading) == version
    if not right:
        expected = "Unreleased" if ".dev" in version else f"{version} (YYYY-MM-DD)"
        raise SystemExit(f"CHANGELOG.md: expected its first section to be '## {expected}', got '## {heading}'")
    if not any(line.strip() and not line.startswith("#") for line in lines):
        raise SystemExit(f"CHANGELOG.md: the section '## {heading}' has no text")
    return version


def build_all(version: str, work: Path) -> tuple[Path, dict[str, Path]]:
    """The source archive, and the wheels by the name of their target or ``none``; built in one environment."""
    shutil.rmtree(OUT, ignore_errors=True)
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    python = fresh_environment(work / "build", "build", *requires)
    build(python, None, "--sdist")
    wheels = {}
    for name in [*TARGETS, "none"]:
        before = {*OUT.glob("*.whl")}
        build(python, name, "--wheel")
        (wheels[name],) = {*OUT.glob("*.whl")} - before
    return OUT / f"echelon_env-{version}.tar.gz", wheels


def build(python: Path, target: str | None, kind: str) -> None:
    """Build one file."""
    environment = {**os.environ, **({} if target is None else {"ECHELON_TARGET": target})}
    command = (str(python), "-m", "build", "--no-isolation", "--quiet", kind, "--outdir", str(OUT), str(ROOT))
    run(*command, env=environment)


def check_sdist(sdist: Path, version: str) -> None:
    """Raise SystemExit for a source archive without what its wheels are built from."""
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    needed = (f"echelon_env-{version}/{name}" for name in ("README.md", "LICENSE", "pyproject.toml", "hatch_build.py"))
    missing = [name for name in needed if name not in names]
    if missing:
        raise SystemExit(f"{sdist.name}: missing: {missing}")


def check_wheel(wheel: Path, target: Target | None) -> None:
    """Raise SystemExit for a wheel with files too many or too few, or metadata that an index cannot show."""
    tags = "any" if target is None else ".".join(target.tags)
    if not wheel.name.endswith(f"-py3-none-{tags}.whl"):
        raise SystemExit(f"{wheel.name}: expected the tags py3-none-{tags}")
    if wheel.stat().st_size > MAX_WHEEL:
        raise SystemExit(f"{wheel.name}: expected at most {MAX_WHEEL:,} bytes, got {wheel.stat().st_size:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        folder = metadata.rsplit("/", 1)[0]
        others = [name for name in names if name.split("/")[0] not in (*PACKAGES, folder)]
        policies = [f"echelon_env/champions/{name}/policy.safetensors" for name in champions()]
        needed = [f"{folder}/licenses/LICENSE", *policies]
        missing = [name for name in needed if name not in names]
        if others or missing:
            raise SystemExit(f"{wheel.name}: not expected: {others[:4]}; missing: {missing}")
        code = [name for name in names if name.startswith("echelon_env/machine_code/")]
        if target is None and code:
            raise SystemExit(f"{wheel.name}: expected no machine code, got {code}")
        if target is not None:
            first = archive.read(f"echelon_env/machine_code/{target.library}")[:4]
            if not first.startswith(MAGIC[target.name.split("-")[0]]):
                raise SystemExit(
                    f"{wheel.name}: {target.library} is no library of {target.name}: it begins with {first!r}"
                )
        check_metadata(wheel.name, email.message_from_bytes(archive.read(metadata)))


def champions() -> list[str]:
    """The names of the policies that ship."""
    return [path.parent.name for path in (ROOT / "src" / "echelon_env" / "champions").glob("*/policy.safetensors")]


def check_metadata(name: str, metadata: Message) -> None:
    """Raise SystemExit for URLs or links that lead nowhere from the page of an index."""
    urls = [entry.split(", ", 1)[1] for entry in metadata.get_all("Project-URL", [])]
    text = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"(?:src|href)=\"([^\"]+)", text)
    relative = [link for link in [*urls, *links] if not link.startswith(("https://", "#"))]
    if not urls or not links or relative:
        raise SystemExit(f"{name}: expected project URLs and absolute links, got {relative or 'none'}")


def try_installed(what: str, requirement: str, work: Path) -> None:
    """Install into a fresh environment `what` without extras, and play there."""
    python = fresh_environment(work / what, requirement)
    policy = ROOT / "src" / "echelon_env" / "champions" / "duel"
    shutil.copy(ROOT / ".ci" / "smoke.py", work / what)
    environment = {**without_sources(work / what), "ECHELON_POLICY": str(policy)}
    environment["PATH"] = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    run(str(python), "-W", "error", "smoke.py", cwd=work / what, env=environment)


def try_without_machine_code(wheel: Path, work: Path) -> None:
    """The wheel for any other machine says what it lacks, and plays with the extra `jit`."""
    python = fresh_environment(work / "none", str(wheel))
    environment = without_sources(work / "none")
    run(str(python), "-W", "error", "-c", WITHOUT_CODE, cwd=work, env=environment)
    install(python, f"{wheel}[jit]")
    run(str(python), "-W", "error", "-c", WITH_JIT, cwd=work, env=environment)


def without_sources(folder: Path) -> dict[str, str]:
    """The variables for Python in a virtual environment: no path to these sources, and an empty cache."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "ECHELON_CACHE_DIR": str(folder / "cache")}


def fresh_environment(folder: Path, *requirements: str) -> Path:
    """The interpreter of a new virtual environment with these requirements."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install(python, *requirements)
    return python


def install(python: Path, *arguments: str) -> None:
    """Install with pip and the tested versions."""
    command = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*command, "-c", str(ROOT / "constraints.txt"), *arguments)


def run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """The output of a command. Raises SystemExit with all that it wrote if it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def main() -> None:
    """Check everything, and say what is ready."""
    version = check_sources()
    print(f"echelon-env {version}: building", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        sdist, wheels = build_all(version, work)
        check_sdist(sdist, version)
        for name, wheel in wheels.items():
            check_wheel(wheel, TARGETS.get(name))
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        twine = fresh_environment(work / "twine", "twine")
        run(str(twine), "-m", "twine", "check", "--strict", str(sdist), *map(str, wheels.values()))
        for name, target in TARGETS.items():
            for tag in target.tags:
                where = ("--target", str(work / name / tag), "--platform", tag, "--no-deps", "--only-binary=:all:")
                install(Path(sys.executable), *where, str(wheels[name]))
        if machine() in wheels:
            try_installed("wheel", str(wheels[machine()]), work)
            try_installed("sdist", str(sdist), work)
        try_without_machine_code(wheels["none"], work)
    print(f"ready to publish: {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
