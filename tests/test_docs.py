# SPDX-License-Identifier: Apache-2.0
"""Every ```python block of README.md and docs/ runs.

The blocks of one page share a namespace, as one file whose lines have the numbers that they have in the page. A block
opened with ```python no-run is left out, one opened with ```python gpu where there is no GPU.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HAS_GPU = Path("/dev/nvidia0").exists()
ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)[ \t]*(.*)$")


def python_of(page: Path) -> str:
    lines, keep, inside = [], False, False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if fence and not inside:
            language, words = fence.group(1), fence.group(2).split()
            assert set(words) <= {"no-run", "gpu"}, f"{page.name}:{number}: unknown word after ```{language}"
            inside = True
            keep = language == "python" and "no-run" not in words and (HAS_GPU or "gpu" not in words)
            lines.append("")
        elif fence:
            inside = keep = False
            lines.append("")
        else:
            lines.append(line if keep else "")
    assert not inside, f"{page.name}: a block is not closed"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_examples_of_the_page_run(page, run_python):
    code = python_of(page)
    if not code.strip():
        pytest.skip("no Python on this page")
    run_python(code)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_links_of_the_page_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
