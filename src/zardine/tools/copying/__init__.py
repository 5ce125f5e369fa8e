"""One way to move what is stored of an array from one layout to another, in three ideas.

- *Blocks* (:mod:`.blocks`, :mod:`.counted_blocks`, :mod:`.array_blocks`): which boxes, in which order, so that they fit
  into memory and little is read twice; where there are none, by way of temporary arrays (:mod:`.between`).
- *Move* (:mod:`.move`, :mod:`.append`): a box from one array to the other, as the encoded bytes that its chunks are, or
  decoded and encoded; and :mod:`.compare`, whether both hold the same.
- *Commit*: how what was made comes to count. At a new place (:mod:`.new_place`), whose documents come last; or in
  place, by one switch of the document (:mod:`zardine.tools.resharding.in_place`).

:mod:`.work` makes jobs of them for one array. A tool is its choice of the three, its command and its report:

==================  ===================================  =================================  ===========================
tool                blocks                               move                               commit
==================  ===================================  =================================  ===========================
``reshard``         :mod:`.array_blocks`                 encoded if chunks and codecs       a switch; with ``target``
                                                         stay; else as ``rechunk``          the document last, by the
                                                                                            same journal
``rechunk``         :mod:`.array_blocks`                 decoded; appended to local shards  :mod:`.new_place`
``convert``         the new objects of one old one,      decoded; out of foreign files      :mod:`.new_place`
                    else :mod:`.array_blocks`            encoded, if chunks stay
``from_array``,     the new objects of one old one       decoded                            the document first; erased
``copy``                                                                                    after an error
==================  ===================================  =================================  ===========================

``compact`` and ``copy_store`` are not built on this: the first puts the chunks of one object into another order, where
ranges that chunks share stay shared; the second copies values, of whatever meaning.
"""
