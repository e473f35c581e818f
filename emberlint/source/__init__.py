"""Files as they are written: bytes and lines on disk, the text of a source, and the tree that Python makes of it."""
