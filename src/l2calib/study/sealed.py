"""Parquet files with a seal, a digest of every byte: one that is not as it was written is known (docs/decisions/0008).

The seal is a text in the file's metadata, and counts as zeros when the digest is computed. Any reader of Parquet reads
the files; here the seal is checked before Parquet sees them, since a damaged file may do worse to it than be wrong.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from l2calib.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = b"l2calib-sha256="
_ZEROS = b"0" * 64
_ABOUT = b"l2calib"


class DamagedError(DataError):
    """A file that is not as it was written; the message says no more than what is wrong with it."""


def seal(table: pa.Table, about: dict[str, Any]) -> bytes:
    """A Parquet file with a table and what is known about it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = {_ABOUT: json.dumps(about).encode(), b"l2calib.seal": _MARK + _ZEROS}
    sink = pa.BufferOutputStream()
    # With the Arrow schema stored too, the metadata would be there twice.
    with pq.ParquetWriter(sink, table.schema, compression="zstd", use_dictionary=False, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    data: bytes = sink.getvalue().to_pybytes()
    start = data.rindex(_MARK) + len(_MARK)
    return data[:start] + _digest(data, start) + data[start + len(_ZEROS) :]


def unseal(data: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """The table and what is known about it; DamagedError if a byte has changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check(data)
    table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)  # small: threads and datasets cost more
    return table.replace_schema_metadata(None), json.loads(table.schema.metadata[_ABOUT])


def about(data: bytes) -> dict[str, Any]:
    """What is known about the table, which is not read; DamagedError if a byte has changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check(data)
    known: dict[str, Any] = json.loads(pq.read_metadata(pa.BufferReader(data)).metadata[_ABOUT])
    return known


def check(data: bytes) -> None:
    """Raise DamagedError if a byte has changed."""
    if not data:
        raise DamagedError("is empty")
    start = data.rfind(_MARK) + len(_MARK)
    if start < len(_MARK):
        raise DamagedError("is cut short or was not written by a study")
    if data[start : start + len(_ZEROS)] != _digest(data, start):
        raise DamagedError("is not as it was written")


def _digest(data: bytes, start: int) -> bytes:
    view = memoryview(data)
    digest = hashlib.sha256(view[:start])
    digest.update(_ZEROS)
    digest.update(view[start + len(_ZEROS) :])
    return digest.hexdigest().encode()
