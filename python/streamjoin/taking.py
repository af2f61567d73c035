"""`take` for every Arrow type, also those that pyarrow has no kernel for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def take_all(column: pa.ChunkedArray, indices: pa.Array) -> pa.Array | pa.ChunkedArray:
    """Take rows of a chunked column as one array.

    In chunks where dictionaries with narrow indices hold more values together than one of them can: each
    chunk has a dictionary of its own.
    """
    try:
        return _taken(pa.concat_arrays(column.unify_dictionaries().chunks), indices)
    except pa.ArrowInvalid as error:
        if "larger index type" not in str(error):
            raise
    if pa.types.is_dictionary(column.type):
        values = pa.concat_arrays([chunk.dictionary_decode() for chunk in column.chunks])
        return pa.chunked_array(_encoded(_taken(values, indices), column.type), type=column.type)
    return pa.chunked_array(_taken_apart(column, indices), type=column.type)


def _encoded(values: pa.Array, type_: pa.DictionaryType) -> list[pa.Array]:
    """Encode values in as many chunks as the width of the indices asks for."""
    encoded = values.dictionary_encode()
    if len(encoded.dictionary) > 2 ** (type_.index_type.bit_width - 1):
        middle = len(values) // 2
        return [*_encoded(values.slice(0, middle), type_), *_encoded(values.slice(middle), type_)]
    indices = encoded.indices.cast(type_.index_type)
    return [pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=type_.ordered)]


def _taken_apart(column: pa.ChunkedArray, indices: pa.Array) -> list[pa.Array]:
    """Take each run of rows that lie in one chunk by itself."""
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    places = indices.fill_null(0).to_numpy()
    chunks = starts.searchsorted(places, side="right") - 1
    cuts = [0, *(np.flatnonzero(np.diff(chunks)) + 1), len(indices)]
    return [
        _taken(
            column.chunk(int(chunks[begin])),
            pc.subtract(indices.slice(begin, end - begin), int(starts[chunks[begin]])),
        )
        for begin, end in pairwise(cuts)
    ]


def _taken(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Take rows, also of types that pyarrow has no kernel for: views and runs, in their plain form."""
    type_ = column.type
    if pa.types.is_run_end_encoded(type_):
        taken = _taken(pc.run_end_decode(column), indices)
        return pc.run_end_encode(taken, run_end_type=type_.run_end_type)
    plain = _without_views(type_)
    return column.take(indices) if plain == type_ else column.cast(plain).take(indices).cast(type_)


def _without_views(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_binary_view(type_):
        return pa.large_binary()
    if pa.types.is_struct(type_):
        return pa.struct([_field_without_views(type_.field(i)) for i in range(type_.num_fields)])
    if pa.types.is_map(type_):
        return pa.map_(
            _field_without_views(type_.key_field),
            _field_without_views(type_.item_field),
            keys_sorted=type_.keys_sorted,
        )
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_field_without_views(type_.value_field), type_.list_size)
    for is_kind, kind in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_kind(type_):
            return kind(_field_without_views(type_.value_field))
    return type_


def _field_without_views(field: pa.Field) -> pa.Field:
    return field.with_type(_without_views(field.type))
