"""The category dtypes."""
