"""Data types: names in JSON, NumPy dtypes in memory, fill values in both."""

from zardine.data_types.base import DataType
from zardine.data_types.from_numpy import data_type_for, numpy_dtype
from zardine.data_types.registry import parse_data_type, register_data_type

__all__ = ["DataType", "data_type_for", "numpy_dtype", "parse_data_type", "register_data_type"]
