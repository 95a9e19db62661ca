"""Five small tools and a repair hook, for the streams in this folder. Nothing here needs a network."""

import re
from pathlib import Path
from typing import Literal, TypedDict

import anyio

from toolrun import Repaired, RepairRequest, Retry, ToolContext, ToolError, ToolRegistry

registry = ToolRegistry()

FOLDER = Path(__file__).parent
CELSIUS = {"Lisbon": 24.5, "Oslo": 18.5, "Quito": 15.0}
RATES = {("EUR", "NOK"): 11.42, ("EUR", "USD"): 1.09}
ATTEMPTS_WITHOUT_ANSWER = 2
NOTES: dict[str, tuple[str, str]] = {}


class Weather(TypedDict):
    city: str
    degrees: float
    unit: str


@registry.tool(timeout=5, effect="pure")
async def get_weather(city: str, unit: Literal["c", "f"] = "c") -> Weather:
    """Current weather.

    Args:
        city: Name of the city.
        unit: Celsius or Fahrenheit.
    """
    await anyio.sleep(0.5)  # what a weather service would take
    if city not in CELSIUS:
        raise ToolError(f"no weather for {city!r}; there is some for {', '.join(CELSIUS)}")
    degrees = CELSIUS[city] if unit == "c" else CELSIUS[city] * 9 / 5 + 32
    return {"city": city, "degrees": degrees, "unit": unit}


@registry.tool(effect="pure")
def read_lines(path: str, first: int = 1, count: int = 10) -> str:
    """Read some lines of a file in this folder.

    Args:
        path: Relative to the folder.
        first: The first line to read, from 1.
        count: How many lines.
    """
    file = (FOLDER / path).resolve()
    if not file.is_relative_to(FOLDER.resolve()) or not file.is_file():
        raise ToolError(f"there is no file {path!r} in this folder")
    lines = file.read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[first - 1 : first - 1 + count])


@registry.tool(effect="idempotent")
def save_note(title: str, text: str, context: ToolContext) -> str:
    """Save a note.

    Args:
        title: A few words.
        text: The note.
        context: The key in it is the same on every attempt of a call, so a note is saved once.
    """
    NOTES.setdefault(context.key, (title, text))
    return f"saved {title!r} for {context.call_id}"


@registry.tool(effect="idempotent", retry=Retry(on=ConnectionError, attempts=4, wait=0.05, max_wait=0.2))
async def exchange_rate(base: str, quote: str, context: ToolContext) -> float:
    """Look up an exchange rate.

    Args:
        base: Three letters.
        quote: Three letters.
        context: The service of this example is down for the first two attempts of every call.
    """
    await anyio.sleep(0.1)
    if context.attempt <= ATTEMPTS_WITHOUT_ANSWER:
        raise ConnectionError("the rate service does not answer")
    if (base, quote) not in RATES:
        raise ToolError(f"no rate for {base}/{quote}")
    return RATES[base, quote]


@registry.tool(effect="pure")
def in_both(a: list[int], b: list[int]) -> list[int]:
    """List the numbers that are in both lists."""
    return sorted(set(a) & set(b))


EARLY_CLOSE = re.compile(
    r'\{\s*"(?P<key>\w+)"\s*:(?P<value>.*)\}\s*</(?P=key)>\s*<(?P<next>\w+)>(?P<rest>.*)\}', re.DOTALL
)


@registry.repair(on="parse", tools="in_both")
def early_root_close(request: RepairRequest) -> Repaired | None:
    """Join what a model wrote as `{"a":[1]}</a><b>[2]}`: it closed the root, then went on in markup.

    Whatever this puts together is parsed strictly and validated again.
    """
    found = EARLY_CLOSE.fullmatch(request.text.strip())
    if found is None:
        return None
    text = f'{{"{found["key"]}":{found["value"]},"{found["next"]}":{found["rest"]}}}'
    return Repaired(text=text, note="the root was closed early, and markup followed")
