"""Where the pages of Zarr Vectors import from; the functions are those of :mod:`zardine.vectors`."""
