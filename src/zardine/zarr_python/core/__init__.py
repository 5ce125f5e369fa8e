"""What programs import from the inside of zarr-python and zardine has for nobody else: see :mod:`zardine.stand_in`."""
