"""All tests that are marked ``cuda``, those of each file in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.gpu.results import Entry
from benchmarks.gpu.setting import Setting
from benchmarks.machine import ROOT

OUTCOMES = ("passed", "failed", "skipped")


def tests(setting: Setting) -> None:
    """Run the tests, all files at once; every one that fails is an entry with its error."""
    found = files()
    with ThreadPoolExecutor(len(found)) as pool:
        for entries in pool.map(results, found, [setting.seconds] * len(found)):
            for entry in entries:
                setting.keep(entry)


def files() -> list[Path]:
    """The files with such tests."""
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    return [file for file in found if "pytest.mark.cuda" in file.read_text(encoding="utf-8")]


def results(file: Path, seconds: float) -> list[Entry]:
    """The counts of a file, and its failures."""
    name = str(file.relative_to(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", "-p", "no:cacheprovider", f"--junitxml={report}"]
        command += ["-W", "default"]  # a machine has versions of its own, which may warn
        try:
            code = subprocess.run([*command, name], cwd=ROOT, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            return [Entry(name, {}, f"not done after {seconds:.0f} s")]
        if not report.exists():
            return [Entry(name, {}, f"pytest ended with exit code {code}")]
        return entries(name, ET.parse(report).getroot())


def entries(name: str, report: ET.Element) -> list[Entry]:
    """The counts of a report of pytest, and its failures."""
    counts, failed = dict.fromkeys(OUTCOMES, 0), []
    for case in report.iter("testcase"):
        problem = next((each for each in case if each.tag in ("failure", "error")), None)
        outcome = "failed" if problem is not None else "skipped" if case.find("skipped") is not None else "passed"
        counts[outcome] += 1
        if problem is not None:
            message = (problem.get("message") or "").strip().splitlines() or ["no message"]
            failed.append(Entry(f"{case.get('classname')}.{case.get('name')}", {}, message[0][:200]))
    return [Entry(name, counts), *failed]
