"""Rules that run only when they are selected by their full code."""
