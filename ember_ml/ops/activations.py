"""The category activations."""
