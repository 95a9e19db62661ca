"""The plugin: what it costs, what its fixtures find, and the guide's own tests, run as an embedder would run them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolrun import testing

pytest_plugins = ["pytester"]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"
BLOCKS = re.findall(r"^```(?:python|text)\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
AGENT, TESTS, WITH_FAULT, REFUSED, WITHOUT_TOOLRUN, PAID = BLOCKS[:6]


@pytest.fixture(autouse=True)
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the plugin, pytest's own, and nothing that this project has configured."""
    pytester.makeini(
        "[pytest]\nfilterwarnings = error\naddopts = -p no:cacheprovider -p no:cov -p no:xdist -p no:hypothesispytest"
    )
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


FAULTS = {"answer_with_fault": (WITH_FAULT, REFUSED), "answer_without_toolrun": (WITHOUT_TOOLRUN, PAID)}


def test_the_guides_agents(pytester: pytest.Pytester) -> None:
    """The tests of the guide pass with its agent; with either fault the first one fails, with the text in the guide."""
    faulty = {f"test_{name}": AGENT + agent + f"\n\nanswer = {name}\n\n" + TESTS for name, (agent, _) in FAULTS.items()}
    pytester.makepyfile(test_right=AGENT + TESTS, **faulty)

    result = pytester.runpytest("-rf")

    failed = [line for line in result.outlines if line.startswith("FAILED ")]
    assert [line for line in failed if "test_right" in line] == []
    shown = {re.sub(r"^E +", "", line) for line in result.outlines if line.startswith("E ")}
    for name, (_, text) in FAULTS.items():
        assert any(f"test_{name}.py::test_a_cut_call_pays_nobody" in line for line in failed)
        assert {line.strip() for line in text.splitlines()} <= {line.strip() for line in shown}


def test_a_response_that_nobody_asked_for(pytester: pytest.Pytester) -> None:
    """The test ends with an error, which says what the model had to say."""
    pytester.makepyfile(
        """
        def test_model(fake_model):
            list(fake_model("Hi.", "And bye.").stream([]))

        def test_provider(fake_provider):
            fake_provider("Hi.", wire="ollama")
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*asked 1 of 2 times; it still had to say:", "*- 'And bye.'", "*asked 0 of 1 times*"])


def test_several_models_in_one_test(pytester: pytest.Pytester) -> None:
    """A fixture makes as many as are wanted, each with its options."""
    pytester.makepyfile(
        """
        def test_two(fake_model, recorded_runs):
            first, second = fake_model("Hi.", wire="gemini"), fake_model("Hi.", split=1)
            assert len(list(first.stream([]))) == 2
            assert len(list(second.stream([]))) == 6
        """
    )

    pytester.runpytest().assert_outcomes(passed=1)


def test_a_run_without_the_fixtures_imports_nothing(pytester: pytest.Pytester) -> None:
    """The plugin is loaded, and toolrun is not."""
    pytester.makepyfile(
        """
        import sys

        def test_nothing(request):
            assert request.config.pluginmanager.has_plugin("toolrun")
            assert "pytest_toolrun" in sys.modules
            assert [name for name in sys.modules if name.partition(".")[0] == "toolrun"] == []
        """
    )

    pytester.runpytest_subprocess().assert_outcomes(passed=1)


WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = None
import toolrun
assert "toolrun.testing" not in sys.modules and "http.server" not in sys.modules
from toolrun.testing import *
"""


def test_without_pytest() -> None:
    """Everything but the contract suites can be imported and used."""
    plain = [name for name in testing.__all__ if not name.endswith("Suite")]
    code = (
        WITHOUT_PYTEST.replace("import *", f"import {', '.join(plain)}")
        + 'print(next(FakeModel("Hi.").stream([]))["id"])'
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("chatcmpl-1\n", "")


def test_names_that_are_not_there() -> None:
    """A misspelt name is an AttributeError, as in any module."""
    with pytest.raises(AttributeError, match=r"module 'toolrun\.testing' has no attribute 'JournalSweet'"):
        testing.JournalSweet  # noqa: B018
