"""HDF5, and NetCDF 4, which is HDF5 with conventions: read by h5py, but chunks straight from the file."""
