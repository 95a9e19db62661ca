"""`python -m docs.links SITE [--external]`: check the built site, or list where it leads.

Every link and picture of every page has to lead to a file of the site, and to a place in it that is there; every public
name has to have a place of its own under Reference. Links to other sites are listed, and not fetched.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

MODULES = {
    "toolrun": "toolrun",
    "toolrun.abc": "abc",
    "toolrun.cli": "commands",
    "toolrun.executors": "executors",
    "toolrun.executors.limits": "executors",
    "toolrun.history": "history",
    "toolrun.journals": "journals",
    "toolrun.remote": "remote",
    "toolrun.repairs": "repairs",
    "toolrun.testing": "testing",
    "toolrun.wires": "wires",
    "toolrun.wires.helpers": "wires",
}
"""Each public module, and its page under Reference."""

THEME = "https://squidfunk.github.io/mkdocs-material/"
"""At the foot of every page."""

NOT_FOUND = "404.html"
"""Served from anywhere, so its links begin at the root."""


class Page(HTMLParser):
    """One page: the places that can be linked to, and the links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif value and (name, tag) in {("href", "a"), ("href", "link"), ("src", "img"), ("src", "script")}:
                self.links.append(value)


class Link(NamedTuple):
    """A link of a page, in the order that they are shown in."""

    page: str
    target: str


def main() -> int:
    """Print what is wrong, or the links to other sites."""
    parser = argparse.ArgumentParser(prog="python -m docs.links", description=__doc__)
    parser.add_argument("site", type=Path, help="what mkdocs built")
    parser.add_argument(
        "--external", action="store_true", help="list the links to other sites, with the pages they are on"
    )
    options = parser.parse_args()
    pages = read(options.site)
    if options.external:
        for target, found in external(pages).items():
            print(f"{target}  {', '.join(found)}")
        return 0
    wrong = [f"{page}: {target} leads nowhere" for page, target in broken(options.site, pages)]
    wrong += [f"{name} has no place in the reference" for name in missing(pages, public())]
    for line in wrong:
        print(line)
    return int(bool(wrong))


def read(site: Path) -> dict[str, Page]:
    """The pages of a site, by their path in it."""
    found = {path.relative_to(site).as_posix(): Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    if not found:
        sys.exit(f"{site} has no pages")
    return found


def broken(site: Path, pages: Mapping[str, Page]) -> Iterator[Link]:
    """The links within the site that lead nowhere."""
    for name, page in pages.items():
        for target in dict.fromkeys(page.links):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or name == NOT_FOUND:
                continue
            path = (site / name).parent / unquote(parts.path) if parts.path else site / name
            path = (path / "index.html" if path.is_dir() else path).resolve()
            there = (
                pages.get(path.relative_to(site.resolve()).as_posix()) if path.is_relative_to(site.resolve()) else None
            )
            if not path.is_file() or (parts.fragment and there and unquote(parts.fragment) not in there.places):
                yield Link(name, target)


def external(pages: Mapping[str, Page]) -> dict[str, list[str]]:
    """The links to other sites, and the pages that they are on."""
    found = defaultdict(list)
    for name, page in pages.items():
        for target in dict.fromkeys(page.links):
            if urlsplit(target).netloc and target != THEME:
                found[target].append(name)
    return dict(sorted(found.items()))


def public() -> Iterator[tuple[str, str]]:
    """Every public name, and the page that it belongs on."""
    for module, page in MODULES.items():
        for name in importlib.import_module(module).__all__:
            yield f"{module}.{name}", f"reference/{page}.html"


def missing(pages: Mapping[str, Page], names: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The names that cannot be linked to."""
    return (name for name, page in names if name not in pages[page].places)


if __name__ == "__main__":
    sys.exit(main())
