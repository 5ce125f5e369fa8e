"""Neuroglancer's precomputed format: annotations, skeletons and meshes. Pure modules, and one way in and out.

``sharding``, ``annotations``, ``spatial``, ``skeletons``, ``meshes`` and ``segments`` turn documents and bytes into
values and back; ``space`` knows units; ``folder`` is where values lie. ``annotation_tables`` and ``segment_tables`` see
a Zarr Vectors store as such a folder, for the server, and a part of it at a time for ``work``, which exports by jobs;
``reading`` makes a store of a folder.
"""
