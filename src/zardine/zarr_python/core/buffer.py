"""``zarr.core.buffer``, for programs that import it: zardine's buffers are bytes."""


def default_buffer_prototype() -> None:
    """Return nothing. Programs for zarr-python hand it on as ``prototype=``, which has no effect."""


__all__ = ["default_buffer_prototype"]
