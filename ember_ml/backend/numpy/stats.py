"""The category stats."""
