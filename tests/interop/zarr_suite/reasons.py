"""Why tests of zarr-python fail under the shim: patterns that are looked for in the test's name and its message."""

from __future__ import annotations

INSIDE = {
    "uses private attributes and functions of arrays, groups or codecs": (
        r"has no attribute '_",
        r"evolve_from_array_spec|resolve_metadata|compute_encoded_size|encode_chunk_key|to_buffer_dict",
        r"SupportsSyncCodec|supports_sync|_sync_roundtrip",
        r"Expected dict, got <class 'zardine",
        r"index_chunk_slice_fails|test_check_backend_version|rejects_outdated_backend|codec_pipeline_pool",
        r"test_cast_value\.py::test_from_dict|has no attribute 'dtype'",
        r"Unexpected metadata type|TestParseHierarchyDict|test_build_metadata_v3|test_get_node|test_get_roots",
        r"unexpected keyword argument '(metadata|store_path)'",
        r"has no attribute '(validate|update_shape|chunks|from_dict)'",
        r"test_numcodecs\.py::test_docstring|Can't instantiate abstract class",
        r"test_resize_bounds_pending_deletions|test_create_hierarchy_unbuildable_node",
        r"test_(group_getitem|group_delitem|group_members_async)\[.*True\]|test_init_disallowed_extra_fields",
        r"test_like_args|ArrayV2Metadata\.chunk_grid is deprecated",
        r"test_create_nodes|test_consistent_signatures|Unknown chunk grid metadata type",
        r"'Extension' object|isinstance\(Extension\(",
    ),
    "makes an asynchronous store of its own, or counts requests to a mocked one": (
        r"is a store with asynchronous methods",
        r"was never awaited|PytestUnraisableExceptionWarning|test_resize_delete_failure",
        r"CountingDict|CountingStore|LatencyStore|num_gets|call_count|without_deletes",
        r"Unsupported type for store_like",
        r"got an unexpected keyword argument 'prototype'",
        r"test_sharding_(partial_shard_read|multiple_chunks|duplicate_read|partial_overwrite|overwrite)",
    ),
    "compares with private classes of zarr-python (descriptions, grids, codecs of numcodecs, data types)": (
        r"TestInfo",
        r"test_numcodecs\.py::(test_get_codec_class|test_repr|test_to_dict|test_codecs_pickleable)",
        r"KeyError: \"unknown setting 'codecs'\"",
        r"codec not available",
        r"ChunkGridMetadata|RegularChunkGrid",
        r"test_construction_accepts_zdtype",
    ),
    "compares signatures of functions with each other": (r"signature",),
}
"""Not counted: what is tested is not to be had without zarr-python's own inside."""

ON_PURPOSE = {
    "shrinking an array clears the cells that fall outside": (r"test_resize_2d|keeps_cells_beyond_shape",),
    "several masks or lists in plain brackets are refused; `oindex` says what is meant": (
        r"several lists mixed with slices are ambiguous",
    ),
    "negative steps work, and one list among slices": (
        r"test_indexing\.py.*DID NOT RAISE IndexError",
        r"fancy_indexing_doesnt_mix",
    ),
    "warnings of zarr-python that zardine does not give": (r"DID NOT WARN",),
    "the dtype of `create(data=)` is that of the data": (r"test_create_mode_data",),
    "chunks and shards that are chosen automatically have other shapes": (
        r"test_auto_chunks|test_auto_partition|auto_shards",
    ),
    "byte order is no part of a data type: native in memory, the codec says it": (
        r"endianness|assert 'little' == 'big'|dtype\('>",
    ),
    "NaN and infinities in attributes are refused, since JSON has none": (r"JSON has no (inf|nan)",),
    "a NaN keeps its bits: `-NaN` is written as hexadecimal digits": (r"0xffc00000|0xfff8",),
    "opt-in to pickles is asked when a chunk is read, not when an array is opened": (
        r"PickleCodecDisabledError|Pickle",
    ),
    "a document that replaces another has a generation of its own, so that other writers notice": (
        r"test_overwrite_replaces_existing_node",
    ),
    "an array like one of another version keeps what that version can say, no compressor for instance": (
        r"test_like_zarr_format",
    ),
    "codecs are checked when an array is made with them": (r"rejects_variable_size_index",),
    '`TransposeCodec(order="F")` is taken, as older documents have it': (r"test_transpose_invalid",),
    "`create_hierarchy` takes nodes of several versions, and the root": (
        r"create_hierarchy_(no_root|invalid_mixed)|test_create_rooted_hierarchy|test_create_hierarchy\[",
        r"array_helpers_other_format",
    ),
    "codecs of v2 and v3 are taken for either version": (r"test_v2_with_v3_compressor|test_invalid_v3_arguments",),
    "values that a setting, an argument or a fill value cannot have are another class of error": (
        r"invalid_config_value|invalid_fill_value|unstorable_dtype|rejects_non_numeric|there is no Zarr format",
        r"wrong_node_type_raises|construction_rejects",
    ),
    "documents of v2 without attributes have no `.zattrs`": (r"zattrs",),
    "`update_attributes_async` merges, as `update_attributes` does": (r"update_attributes_async",),
    "a node of another version of Zarr in the same place is refused": (r"v2_and_v3_exist",),
    "the text that an array shows has its chunks": (r"test_array_repr",),
    "automatic parameters of blosc are chosen when the array is made": (r"test_tunable_attrs_param",),
    "unused `order` is not ignored in v3": (r"test_array_order|F_order",),
    "codecs spell out every member, in lists": (
        r"test_cast_value\.py::test_to_dict|default_byte_order_is_little|test_roundtrip_numcodecs",
        r"test_default_filters_compressors",
    ),
    "documents are written with other white space, and sizes differ": (r"nbytes_stored",),
}
"""Counted as failures; each has a row in ``docs/from-zarr-python.md``."""
