"""How cells, tables and documents of the format are encoded: bytes to arrays and back. No I/O."""
