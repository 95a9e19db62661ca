"""`python -m docs.links`, which CI runs on the site that it built: what it finds wrong, and what it lists."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_public_api import PUBLIC

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)


def test_every_public_module_has_a_page() -> None:
    from docs.links import MODULES

    assert set(MODULES) == set(PUBLIC)
    assert all((ROOT / f"docs/reference/{page}.md").is_file() for page in MODULES.values())


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ('<a href="guides/b.html#there">', []),
        ('<a href="guides/b.html">', []),
        ('<a href="guides">', []),
        ('<a href="#own"><h2 id="own">', []),
        ('<img src="picture.svg">', []),
        ('<a href="https://example.org/nowhere#x">', []),
        ('<a href="guides/b.html#not">', ["guides/b.html#not"]),
        ('<a href="guides/c.html">', ["guides/c.html"]),
        ('<a href="#own">', ["#own"]),
        ('<img src="other.svg">', ["other.svg"]),
        ('<a href="../outside.html">', ["../outside.html"]),
    ],
)
def test_broken(tmp_path: Path, body: str, wrong: list[str]) -> None:
    """A link or a picture that leads to no file, or to no place in it."""
    from docs.links import broken, read

    site = tmp_path / "site"
    (site / "guides").mkdir(parents=True)
    (site / "a.html").write_text(body)
    (site / "guides/index.html").write_text("<p>")
    (site / "guides/b.html").write_text('<h2 id="there"><a href="../a.html">')
    (site / "picture.svg").write_text("<svg/>")

    assert [target for _, target in broken(site, read(site))] == wrong


def test_missing_names(tmp_path: Path) -> None:
    """A public name needs a place that can be linked to."""
    from docs.links import missing, read

    (tmp_path / "a.html").write_text('<h2 id="toolrun.Runner">')

    names = [("toolrun.Runner", "a.html"), ("toolrun.Turn", "a.html")]
    assert list(missing(read(tmp_path), names)) == ["toolrun.Turn"]


def test_the_list_of_other_sites(tmp_path: Path) -> None:
    """With the pages that lead there."""
    (tmp_path / "a.html").write_text('<a href="https://example.org/x"><a href="b.html">')
    (tmp_path / "b.html").write_text('<a href="https://example.org/x">')
    done = subprocess.run(
        [sys.executable, "-m", "docs.links", tmp_path, "--external"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "https://example.org/x  a.html, b.html\n")
