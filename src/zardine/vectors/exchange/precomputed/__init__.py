"""Neuroglancer's precomputed format: annotations, skeletons and meshes. Pure modules, and one way in and out.

``sharding``, ``annotations``, ``spatial``, ``skeletons``, ``meshes`` and ``segments`` turn documents and bytes into
values and back; ``space`` knows units; ``folder`` is where values lie. ``collection`` is a Zarr Vectors store seen as
such a folder, for export and for the server; ``reading`` makes a store of a folder.
"""
