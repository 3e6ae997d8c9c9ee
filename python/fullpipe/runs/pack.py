"""One file of many runs: records one after the other, each with checksums of its own.

    head   8 bytes   a mark
           32        the run's address
           8         length of the body, in bytes
           4         CRC-32 of the body
           4         CRC-32 of the head up to here
    body   a line of JSON about the run, with the lengths of the parts after it
           summary.json, flows.parquet, links.parquet, deflated together if they are small

Numbers are little-endian. A record is only ever appended. So a process that is killed leaves at most an
incomplete record at the end, and damage costs the records that it touches: the next mark begins a whole one.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

# The first byte occurs in no text. The line ends show whether a program converted them.
MARK = b"\xffFPRUN\r\n"
_HEAD = struct.Struct("<8s32sQII")
_CHECKED = _HEAD.size - 4
_PARTS = ("summary", "flows", "links")
# Larger bodies are mostly series, which are compressed already.
_MOST_DEFLATED = 1 << 16
_CHUNK = 1 << 20
# A body that claims to be longer is damaged.
LARGEST = 1 << 31
# What a scan reads at most to find records in what is damaged, in multiples of the file's size.
_EFFORT = 4
# What a body that is not as `encode` writes it raises.
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, zlib.error, RecursionError, MemoryError)


class Damaged(ValueError):
    """A record that is not as it was written."""


@dataclass(frozen=True)
class Record:
    """What one record holds."""

    about: dict[str, Any]
    summary: dict[str, Any]
    flows: bytes
    links: bytes


@dataclass(frozen=True)
class Found:
    """Where a record is, by its head. Its body is not checked yet."""

    key: bytes
    at: int
    size: int


@dataclass(frozen=True)
class Scan:
    """The records of a file, and the ranges of bytes (begin, end) that belong to none."""

    records: list[Found]
    lost: list[tuple[int, int]]
    # Whether the last of these ranges is an incomplete record at the end, as a killed process leaves it.
    cut: bool


def encode(
    key: str, about: Mapping[str, object], summary: Mapping[str, Any], flows: bytes, links: bytes
) -> bytes:
    """A record."""
    text = json.dumps(summary).encode()
    parts = b"".join((text, flows, links))
    deflated = len(parts) <= _MOST_DEFLATED
    line = {**about, "lengths": [len(text), len(flows), len(links)], "deflated": deflated}
    body = json.dumps(line).encode() + b"\n" + (zlib.compress(parts, 1) if deflated else parts)
    head = _HEAD.pack(MARK, bytes.fromhex(key), len(body), zlib.crc32(body), 0)[:_CHECKED]
    return b"".join((head, struct.pack("<I", zlib.crc32(head)), body))


def decode(data: bytes, key: str) -> Record:
    """The record of a run.

    Raises:
        Damaged: It is not whole, or it is another run's.
    """
    head = _head(data[: _HEAD.size])
    if head is None:
        raise Damaged("its head is damaged")
    found, length, checksum = head
    body = memoryview(data)[_HEAD.size :]
    if len(body) != length or zlib.crc32(body) != checksum:
        raise Damaged("its checksum is wrong")
    if found.hex() != key:
        raise Damaged("it is another run")
    try:
        return _decoded(bytes(body))
    except _MALFORMED:
        raise Damaged("its content is not that of a run") from None


def read(file: BinaryIO, at: int, size: int, key: str) -> Record:
    """The record of a run, from a file.

    Raises:
        Damaged: It is not whole, or it is another run's.
    """
    # What is large is checked before all of it is in memory.
    if size > _CHUNK and not _whole(file, Found(bytes.fromhex(key), at, size)):
        raise Damaged("its checksum is wrong")
    file.seek(at)
    return decode(file.read(size), key)


def checked(about: Any, summary: Any, flows: bytes, links: bytes) -> Record:
    """A record of what was read.

    Raises:
        Damaged: It has not the shape of a run.
    """
    provenance = summary.get("provenance") if isinstance(summary, dict) else None
    if not isinstance(about, dict) or not isinstance(provenance, dict):
        raise Damaged("its content is not that of a run")
    for name in ("untrustworthy", "unsupported"):
        message = provenance.get(name)
        if message is not None and not (
            isinstance(message, list) and all(isinstance(one, str) for one in message)
        ):
            raise Damaged("its content is not that of a run")
    return Record(about, summary, flows, links)


def scan(file: BinaryIO) -> Scan:
    """Finds the records of a file. Only heads are read, and more where they do not follow one another.

    What is read is bounded. Beyond that, nothing more is looked for in what is damaged.
    """
    size = os.fstat(file.fileno()).st_size
    records: list[Found] = []
    lost: list[tuple[int, int]] = []
    at, cut = 0, False
    to_check, to_search = _EFFORT * min(size, LARGEST) + _CHUNK, _EFFORT * LARGEST // 2
    while at < size:
        found = _record(file, at, size)
        if found is not None:
            records.append(found)
            at += found.size
            continue
        begin = at
        # If bytes are missing in the record before, it reaches into its successors. Many heads that claim
        # the same bytes would be checked for ever: a record that is not checked here is when it is read.
        if records and records[-1].at + records[-1].size == at and records[-1].size <= to_check:
            to_check -= records[-1].size
            if not _whole(file, records[-1]):
                begin = records.pop().at
        end = min(size, begin + to_search)
        at = _next(file, begin + 1, end, size)
        to_search -= at - begin
        if at == end:
            at = size
        cut = at == size == end and _begins(file, begin)
        lost.append((begin, at))
    return Scan(records, lost, cut)


def _decoded(body: bytes) -> Record:
    """The record with that body. Raises one of `_MALFORMED` unless it is as `encode` writes it."""
    line, _, packed = body.partition(b"\n")
    about: dict[str, Any] = json.loads(line)
    deflated, lengths = about.pop("deflated"), about.pop("lengths")
    if type(deflated) is not bool or len(lengths) != len(_PARTS):
        raise ValueError
    if any(type(length) is not int or length < 0 for length in lengths):
        raise ValueError
    parts = _inflated(packed, sum(lengths)) if deflated else packed
    if len(parts) != sum(lengths):
        raise ValueError
    ends = [sum(lengths[: number + 1]) for number in range(len(_PARTS))]
    text, flows, links = (parts[end - length : end] for end, length in zip(ends, lengths, strict=True))
    return checked(about, json.loads(text), flows, links)


def _inflated(packed: bytes, size: int) -> bytes:
    """Exactly so many bytes. A few packed bytes can be a thousand times as many."""
    if size > _MOST_DEFLATED:
        raise ValueError
    inflating = zlib.decompressobj()
    data = inflating.decompress(packed, size + 1)
    if not inflating.eof or inflating.unused_data:
        raise ValueError
    return data


def _head(data: bytes) -> tuple[bytes, int, int] | None:
    """Address, length and checksum of the body; None if this is no head."""
    if len(data) != _HEAD.size:
        return None
    mark, key, length, checksum, own = _HEAD.unpack(data)
    if mark != MARK or zlib.crc32(data[:_CHECKED]) != own or length > LARGEST:
        return None
    return key, length, checksum


def _record(file: BinaryIO, at: int, size: int) -> Found | None:
    """The record that begins there, if it is complete."""
    file.seek(at)
    head = _head(file.read(_HEAD.size))
    if head is None or at + _HEAD.size + head[1] > size:
        return None
    return Found(head[0], at, _HEAD.size + head[1])


def _whole(file: BinaryIO, found: Found) -> bool:
    """Whether the checksum of the body is right. What the body says is not read."""
    file.seek(found.at)
    head = _head(file.read(_HEAD.size))
    if head is None:
        return False
    left, checksum = found.size - _HEAD.size, 0
    while left and (chunk := file.read(min(left, _CHUNK))):
        left, checksum = left - len(chunk), zlib.crc32(chunk, checksum)
    return left == 0 and checksum == head[2]


def _begins(file: BinaryIO, at: int) -> bool:
    """Whether a record begins there, of which the end is missing."""
    file.seek(at)
    data = file.read(_HEAD.size)
    return _head(data) is not None or (len(data) < _HEAD.size and MARK[: len(data)] == data[: len(MARK)])


def _next(file: BinaryIO, begin: int, end: int, size: int) -> int:
    """Where the next record begins before `end`; `end` if none does."""
    for at in _marks(file, begin, end):
        if _record(file, at, size) is not None:
            return at
    return end


def _marks(file: BinaryIO, begin: int, end: int) -> Iterator[int]:
    # The next mark is mostly near.
    length = 1 << 12
    while begin < end:
        file.seek(begin)
        chunk = file.read(min(length, end - begin))
        at = chunk.find(MARK)
        while at >= 0:
            yield begin + at
            at = chunk.find(MARK, at + 1)
        if begin + len(chunk) >= end or len(chunk) < len(MARK):
            return
        # A mark may lie across the border.
        begin += len(chunk) - len(MARK) + 1
        length = min(2 * length, _CHUNK)
