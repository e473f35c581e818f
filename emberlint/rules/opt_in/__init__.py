"""Rules that run only when they are selected by their whole code."""
