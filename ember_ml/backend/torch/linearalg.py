"""The category linearalg."""
