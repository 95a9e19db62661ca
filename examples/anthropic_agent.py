"""An agent on the Anthropic SDK that asks you before it pays.

ANTHROPIC_API_KEY=… uv run python examples/anthropic_agent.py "Pay Kari 50 for the taxi."
"""

import os
import sys

import anthropic

from toolrun import ApprovalRequest, Approve, Deny, Runner, ToolRegistry

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5")
registry = ToolRegistry()
paid: list[tuple[int, str]] = []


@registry.tool(approval=True, destructive=True)
def pay(amount: int, to: str) -> str:
    """Pay somebody.

    Args:
        amount: Whole euros.
        to: The name of who gets them.
    """
    paid.append((amount, to))
    return f"paid {amount} € to {to}"


def ask(request: ApprovalRequest) -> Approve | Deny:
    """Show the exact arguments, and wait for a yes, a no, or another amount."""
    reply = input(f"{request.tool} {request.arguments} - yes, another amount, or no? ").strip().lower()
    if reply in ("y", "yes"):
        return Approve()
    if reply.isdecimal():
        return Approve({**request.arguments, "amount": int(reply)})
    return Deny("The user said no.")


def answer(client: anthropic.Anthropic, question: str) -> str:
    """Ask, run what the model calls, and ask again, until it only answers."""
    messages = [{"role": "user", "content": question}]
    tools = registry.definitions("anthropic-messages")
    with Runner(registry, approver=ask) as runner:
        while True:
            stream = client.messages.create(model=MODEL, max_tokens=2048, messages=messages, tools=tools, stream=True)
            turn = runner.run_sync(stream)
            messages += turn.messages()
            if not turn.needs_reply:
                return turn.text


if __name__ == "__main__":
    print(answer(anthropic.Anthropic(), " ".join(sys.argv[1:]) or "Pay Kari 50 for the taxi."))
