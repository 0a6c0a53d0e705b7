#!/usr/bin/env python3
"""Checks README.md and docs/: every relative link and anchor is good, the README is short, and all say the same version."""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 120
faults = []


def without_code(text):
    """The text without its code, but with the same lines."""
    blank = lambda match: re.sub(r"[^\n]", "", match.group())
    text = re.sub(r"^```.*?^```", blank, text, flags=re.S | re.M)
    return re.sub(r"^ {4,}\S.*$", "", re.sub(r"`[^`\n]*`", "``", text), flags=re.M)


def anchors(page):
    """What GitHub and mkdocs make of the headings, and what the page names itself."""
    text = page.read_text()
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), flags=re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-"))
    return found


def check_links(page):
    text = without_code(page.read_text())
    for match in re.finditer(r"\]\(([^)\s]+)\)", text):
        link = match.group(1)
        if re.match(r"[a-z]+:", link):
            continue
        where = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            faults.append(f"{where}: there is no {link}")
        elif anchor and anchor not in anchors(target):
            faults.append(f"{where}: {path or page.name} has no anchor #{anchor}")


def check_readme():
    lines = len((ROOT / "README.md").read_text().splitlines())
    if lines > MOST_LINES:
        faults.append(f"README.md has {lines} lines, at most {MOST_LINES} are wanted")


def check_navigation():
    """mkdocs.yml names every page, and no other."""
    listed = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    for page in sorted(listed ^ there):
        faults.append(f"mkdocs.yml: {page} " + ("is not in it" if page in there else "is not in docs/"))


def check_index():
    """test/README.md names every test of servers, and no other."""
    listed = set(re.findall(r"`(\d{3}_\w+\.pl)`", (ROOT / "test/README.md").read_text()))
    there = {test.name for test in (ROOT / "test/t").glob("*.pl")}
    for test in sorted(listed ^ there):
        faults.append(f"test/README.md: {test} " + ("is not in it" if test in there else "is not in test/t/"))
    numbers = [test[:3] for test in there]
    for number in sorted({number for number in numbers if numbers.count(number) > 1}):
        faults.append(f"test/t: two files have the number {number}")


def check_version():
    """The Makefile has the version; the others repeat it because their formats want it."""
    version = re.search(r"^RELEASE *= *(\S+)", (ROOT / "Makefile").read_text(), re.M).group(1)
    meta = json.loads((ROOT / "META.json").read_text())
    others = {
        "onerepl.control": re.search(r"default_version = '(.*)'", (ROOT / "onerepl.control").read_text()).group(1),
        "META.json": meta["version"],
        "META.json, provides": meta["provides"]["onerepl"]["version"],
        "CHANGELOG.md": re.search(r"^## \[?([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1),
    }
    for file, found in others.items():
        if found != version:
            faults.append(f"{file} says version {found}, the Makefile {version}")


pages = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md"), ROOT / "test/README.md"])
for each in pages:
    check_links(each)
check_readme()
check_navigation()
check_index()
check_version()
if faults:
    sys.exit("\n".join(faults))
print(f"docs: {len(pages)} pages good")
