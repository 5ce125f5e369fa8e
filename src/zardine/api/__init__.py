"""The functions of this package in two forms: ``zardine.api.synchronous`` and ``zardine.api.asynchronous``."""
