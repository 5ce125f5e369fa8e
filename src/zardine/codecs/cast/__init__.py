"""The codec ``cast_value``: elements stored as another data type."""
