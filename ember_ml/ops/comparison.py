"""The category comparison."""
