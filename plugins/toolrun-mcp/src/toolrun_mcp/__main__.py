"""`python -m toolrun_mcp`."""

from toolrun_mcp.cli import entry

if __name__ == "__main__":
    entry()
