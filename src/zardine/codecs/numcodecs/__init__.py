"""The codecs of the package ``numcodecs`` in Zarr v3, as zarr-python names and writes them: ``numcodecs.lz4`` etc.

They are no part of the specification; files of theirs exist, so they are read and written.
"""

from zardine.codecs.numcodecs.checksums import CRC32, CRC32C, Adler32, Fletcher32, JenkinsLookup3
from zardine.codecs.numcodecs.compressors import BZ2, LZ4, LZMA, Blosc, GZip, Shuffle, Zlib, Zstd
from zardine.codecs.numcodecs.filters import AsType, BitRound, Delta, FixedScaleOffset, PackBits, Quantize
from zardine.codecs.numcodecs.serializers import ZFPY, PCodec

__all__ = [
    "BZ2",
    "CRC32",
    "CRC32C",
    "LZ4",
    "LZMA",
    "ZFPY",
    "Adler32",
    "AsType",
    "BitRound",
    "Blosc",
    "Delta",
    "FixedScaleOffset",
    "Fletcher32",
    "GZip",
    "JenkinsLookup3",
    "PCodec",
    "PackBits",
    "Quantize",
    "Shuffle",
    "Zlib",
    "Zstd",
]
