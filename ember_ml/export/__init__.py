"""Models in formats of other programs: ``export.onnx`` writes an ONNX file."""

from ember_ml.export.exchange import onnx as onnx

__all__ = ["onnx"]
