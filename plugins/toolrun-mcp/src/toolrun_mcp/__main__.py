"""`python -m toolrun_mcp`."""

from toolrun_mcp._cli import run

if __name__ == "__main__":
    run()
