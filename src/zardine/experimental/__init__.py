"""What zarr-python has under ``zarr.experimental``: :class:`zardine.experimental.cache_store.CacheStore`."""
