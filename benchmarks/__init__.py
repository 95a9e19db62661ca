"""What toolrun costs, as ratios to the least code that does the same work, in one process: `python -m benchmarks`."""
