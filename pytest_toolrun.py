"""The fixtures of `toolrun.testing`, as a plugin of pytest.

It stands beside the package, and imports nothing of it before a fixture is used: a run that uses none pays for none.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

pytest.register_assert_rewrite("toolrun._testing")
"""The contract suites show what was compared, like tests of one's own."""

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolrun import ToolRegistry
    from toolrun.testing import FakeModel, FakeProvider, RecordedRun


@pytest.fixture
def fake_model() -> Iterator[Callable[..., FakeModel]]:
    """Makes a `toolrun.testing.FakeModel`; at the end of the test, every response must have been asked for."""
    from toolrun.testing import FakeModel  # noqa: PLC0415  # see the module

    made: list[FakeModel] = []

    def make(*responses: object, **options: object) -> FakeModel:
        made.append(FakeModel(*responses, **options))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        return made[-1]

    yield make
    for model in made:
        model.assert_exhausted()


@pytest.fixture
def fake_provider(fake_model: Callable[..., FakeModel]) -> Iterator[Callable[..., FakeProvider]]:
    """Makes a `toolrun.testing.FakeProvider` that runs until the end of the test; it is given what `fake_model` is given."""
    with ExitStack() as stack:

        def make(*responses: object, **options: object) -> FakeProvider:
            return stack.enter_context(fake_model(*responses, **options).serve())

        yield make


@pytest.fixture
def recorded_runs() -> Iterator[Callable[[ToolRegistry], list[RecordedRun]]]:
    """Records what the tools of a registry run, until the end of the test: `toolrun.testing.record_runs`."""
    from toolrun.testing import record_runs  # noqa: PLC0415  # see the module

    with ExitStack() as stack:
        yield lambda registry: stack.enter_context(record_runs(registry))
