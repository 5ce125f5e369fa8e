"""NetCDF 3: the classic format, with 64-bit offsets, and with 64-bit data."""
