"""The codec ``blosc``: frames that the kernel and numcodecs both read."""
