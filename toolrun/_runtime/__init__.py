"""The part that waits: it reads streams, drives the flow of each call, and owns every task."""
