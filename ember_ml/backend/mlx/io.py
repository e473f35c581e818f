"""Files of tensors: nothing of this engine's own. The host reads and writes them, the same for every engine."""
