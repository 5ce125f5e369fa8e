"""Base classes for stores and codecs of one's own, where zarr-python has them."""
