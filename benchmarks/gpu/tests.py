"""All tests that are marked ``cuda``, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from benchmarks.gpu.results import Entry
from benchmarks.gpu.setting import Setting
from benchmarks.machine import ROOT

OUTCOMES = ("passed", "failed", "skipped")


def tests(setting: Setting) -> None:
    """Run the tests; every one that fails is an entry with its error."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", "-p", "no:cacheprovider", f"--junitxml={report}"]
        try:
            code = subprocess.run([*command, "tests/train"], cwd=ROOT, timeout=setting.seconds).returncode
        except subprocess.TimeoutExpired:
            setting.keep(Entry("all tests", {}, f"not done after {setting.seconds:.0f} s"))
            return
        if not report.exists():
            setting.keep(Entry("all tests", {}, f"pytest ended with exit code {code}"))
            return
        for entry in entries(ET.parse(report).getroot()):
            setting.keep(entry)


def entries(report: ET.Element) -> list[Entry]:
    """The counts of a report of pytest, and its failures."""
    counts, failed = dict.fromkeys(OUTCOMES, 0), []
    for case in report.iter("testcase"):
        problem = next((each for each in case if each.tag in ("failure", "error")), None)
        outcome = "failed" if problem is not None else "skipped" if case.find("skipped") is not None else "passed"
        counts[outcome] += 1
        if problem is not None:
            message = (problem.get("message") or "").strip().splitlines() or ["no message"]
            failed.append(Entry(f"{case.get('classname')}.{case.get('name')}", {}, message[0][:200]))
    return [Entry("all tests", counts), *failed]
