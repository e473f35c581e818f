"""The category fft."""
