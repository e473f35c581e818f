"""The category indexing."""
