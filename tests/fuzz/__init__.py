"""Coverage-guided fuzzing: `python -m tests.fuzz`. What it found is kept in `finds`, and replayed by ordinary tests."""
