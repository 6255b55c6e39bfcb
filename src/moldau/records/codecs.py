"""Compression of the records of a batch: gzip, snappy, lz4 and zstd, in the framing that Kafka clients expect.

Decompression is bounded: before anything is allocated, the sizes that the frames declare are added up, and never more
than the limit is asked for. What follows the end of a stream is treated as Kafka treats it: ignored after gzip and lz4,
an error after zstd and snappy.
"""

from __future__ import annotations

import zlib
from typing import Final

import cramjam
from isal import isal_zlib
from librt.strings import BytesWriter, read_i32_be, read_i32_le, read_i64_le, write_i32_be, write_i32_le
from mypy_extensions import i64

from moldau.records.batch import CorruptBatch

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

# Stands for the default of whatever codec it is used with.
DEFAULT_LEVEL: Final = -1000
GZIP_DEFAULT_LEVEL: Final = -1
LZ4_DEFAULT_LEVEL: Final = 9
ZSTD_DEFAULT_LEVEL: Final = 3

# No time, no flags, system 255 (unknown), as Java writes it.
GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
# The library's type stubs do not know that this is an exception.
GZIP_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]
GZIP_MAGIC: Final = b"\x1f\x8b"
XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_HEADER_SIZE: Final = 16
SNAPPY_BLOCK_SIZE: Final = 32 * 1024
# Independent blocks of 64 KiB, no checksums, no content size; the last byte is the checksum of the two before it.
LZ4_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
LZ4_MAGIC: Final = 0x184D2204
LZ4_BLOCK_SIZE: Final = 64 * 1024
ZSTD_BLOCK_SIZE_MAX: Final = 128 * 1024
# A window is memory too. Level 22 uses 2^27, and the library refuses more.
ZSTD_WINDOW_MAX: Final = 1 << 27


class DecompressedTooLarge(Exception):
    """The records would need more memory than they may have."""


def codec_name(codec: int) -> str:
    """The name as `compression.type` spells it, except that no compression is `none`."""
    if codec == GZIP:
        return "gzip"
    if codec == SNAPPY:
        return "snappy"
    if codec == LZ4:
        return "lz4"
    if codec == ZSTD:
        return "zstd"
    return "none"


def compress(codec: int, data: bytes, level: int = DEFAULT_LEVEL) -> bytes:
    """`data` as one stream of the codec; levels are those of Kafka's `compression.<codec>.level`."""
    if codec == NONE:
        return data
    if codec == GZIP:
        return _compress_gzip(data, level)
    if codec == SNAPPY:
        return _compress_snappy(data)
    if codec == LZ4:
        return _compress_lz4(data, level)
    if codec == ZSTD:
        return _compress_zstd(data, level)
    raise ValueError(f"unknown compression codec {codec}")


def decompress(codec: int, data: bytes, limit: int) -> bytes:
    """The records inside `data`: CorruptBatch for garbage, DecompressedTooLarge above `limit` bytes."""
    if codec == NONE:
        return data
    try:
        if codec == GZIP:
            return _decompress_gzip(data, limit)
        if codec == SNAPPY:
            return _decompress_snappy(data, limit)
        if codec == LZ4:
            return _decompress_lz4(data, limit)
        if codec == ZSTD:
            return _decompress_zstd(data, limit)
    except IndexError as error:
        raise CorruptBatch(f"{codec_name(codec)} data ends early") from error
    raise CorruptBatch(f"unknown compression codec {codec}")


def _compress_gzip(data: bytes, level: int) -> bytes:
    """Raw deflate between a header and trailer of our own.

    ISA-L is several times faster than zlib and packs at least as well as zlib's lower levels; the higher levels, which
    someone chose for size, go to zlib.
    """
    if level in (DEFAULT_LEVEL, GZIP_DEFAULT_LEVEL):
        packed = isal_zlib.compress(data, 3, -15)
    elif 1 <= level <= 3:
        packed = isal_zlib.compress(data, level, -15)
    else:
        packed = zlib.compress(data, level, -15)
    writer = BytesWriter()
    writer.write(GZIP_HEADER)
    writer.write(packed)
    _write_u32_le(writer, isal_zlib.crc32(data))
    _write_u32_le(writer, len(data) & 0xFFFFFFFF)
    return writer.getvalue()


def _write_u32_le(writer: BytesWriter, value: int) -> None:
    write_i32_le(writer, value - 0x100000000 if value >= 0x80000000 else value)


def _decompress_gzip(data: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    rest = data
    while True:
        stream = isal_zlib.decompressobj(31)
        try:
            part = stream.decompress(rest, left + 1)
        except GZIP_ERROR as error:
            raise CorruptBatch(f"gzip data is broken: {error}") from error
        if len(part) > left:
            raise DecompressedTooLarge(f"gzip data has more than {limit} bytes")
        if not stream.eof:
            raise CorruptBatch("gzip data ends early")
        parts.append(part)
        left -= len(part)
        rest = stream.unused_data
        if rest[:2] != GZIP_MAGIC:
            return part if len(parts) == 1 else b"".join(parts)


def _compress_snappy(data: bytes) -> bytes:
    writer = BytesWriter()
    writer.write(XERIAL_HEADER)
    view = memoryview(data)
    for start in range(0, len(data), SNAPPY_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + SNAPPY_BLOCK_SIZE]))
        write_i32_be(writer, len(block))
        writer.write(block)
    return writer.getvalue()


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if data[:8] != XERIAL_MAGIC:
        if not data:
            raise CorruptBatch("snappy data is empty")
        return _snappy_block(memoryview(data), limit)
    if len(data) < XERIAL_HEADER_SIZE:
        raise CorruptBatch("snappy data ends inside its header")
    view = memoryview(data)
    parts: list[bytes] = []
    left = limit
    index: i64 = XERIAL_HEADER_SIZE
    end = i64(len(data))
    while end - index >= 4:
        # Frames may follow one another; a length cannot look like the header's first byte.
        if data[index] == 0x82 and data[index : index + 8] == XERIAL_MAGIC:
            index += XERIAL_HEADER_SIZE
            continue
        size = i64(read_i32_be(data, index))
        index += 4
        if size < 0 or size > end - index:
            raise CorruptBatch(f"snappy block of {size} bytes does not fit into the {end - index} bytes that are there")
        if size > 0:
            part = _snappy_block(view[index : index + size], left)
            left -= len(part)
            parts.append(part)
        index += size
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy_block(block: memoryview, limit: int) -> bytes:
    try:
        declared: int = cramjam.snappy.decompress_raw_len(block)
        # Two bytes make at most 64; a block that declares more lies, and is not worth the memory.
        if declared > 64 * len(block):
            raise CorruptBatch(f"snappy block of {len(block)} bytes declares {declared}")
        if declared > limit:
            raise DecompressedTooLarge(f"snappy block declares {declared} bytes, at most {limit} may follow")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"snappy data is broken: {error}") from error


def _compress_lz4(data: bytes, level: int) -> bytes:
    """Level 9 is the fast compressor and every other level the high one, as in Kafka."""
    writer = BytesWriter()
    writer.write(LZ4_HEADER)
    if level != DEFAULT_LEVEL and level != LZ4_DEFAULT_LEVEL:
        _write_high_lz4_blocks(writer, data, level)
    else:
        view = memoryview(data)
        for start in range(0, len(data), LZ4_BLOCK_SIZE):
            block = view[start : start + LZ4_BLOCK_SIZE]
            packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
            if len(packed) < len(block):
                write_i32_le(writer, len(packed))
                writer.write(packed)
            else:
                _write_u32_le(writer, len(block) | 0x80000000)
                writer.write(bytes(block))
    write_i32_le(writer, 0)
    return writer.getvalue()


def _write_high_lz4_blocks(writer: BytesWriter, data: bytes, level: int) -> None:
    """The library compresses high only into frames of its own; their blocks are taken over without the checksums."""
    compressor = cramjam.lz4.Compressor(level=max(3, level), content_checksum=False, block_linked=False)
    compressor.compress(data)
    frame = bytes(compressor.finish())
    frame_header = Lz4Frame(frame, 0)
    index = frame_header.first_block
    while True:
        word = i64(read_i32_le(frame, index))
        size = word & 0x7FFFFFFF
        if word == 0:
            return
        writer.write(frame[index : index + 4 + size])
        index += 4 + size + frame_header.block_checksum_size


class Lz4Frame:
    """The header of an lz4 frame: how its blocks are laid out."""

    def __init__(self, data: bytes, position: i64) -> None:
        if i64(len(data)) - position < 7 or read_i32_le(data, position) != LZ4_MAGIC:
            raise CorruptBatch("lz4 data does not start with the frame magic")
        flags = i64(data[position + 4])
        block = i64(data[position + 5])
        if flags >> 6 != 1:
            raise CorruptBatch(f"lz4 frame version {flags >> 6} is not supported")
        block_code = (block >> 4) & 7
        if block_code < 4:
            raise CorruptBatch(f"lz4 block size {block_code} is not supported")
        self.independent_blocks: bool = flags & 0x20 != 0
        self.block_checksum_size: i64 = 4 if flags & 0x10 else 0
        self.content_checksum_size: i64 = 4 if flags & 0x04 else 0
        self.content_size: i64 = -1
        self.block_size: i64 = 1 << (8 + 2 * block_code)
        index = position + 6
        if flags & 0x08:
            if i64(len(data)) - index < 9:
                raise CorruptBatch("lz4 data ends inside its header")
            self.content_size = read_i64_le(data, index)
            index += 8
        if flags & 0x01:
            raise CorruptBatch("lz4 frames with a dictionary are not supported")
        self.first_block: i64 = index + 1


def has_linked_lz4_blocks(data: bytes, position: int) -> bool:
    """Whether the frame's blocks refer to one another; Kafka and its Java clients cannot read such a frame."""
    return not Lz4Frame(data, position).independent_blocks


def _decompress_lz4(data: bytes, limit: int) -> bytes:
    """Walks over the block sizes first: they say where the frame ends and how much can come out of it at most."""
    frame = Lz4Frame(data, 0)
    end = i64(len(data))
    index = frame.first_block
    most: i64 = 0
    while True:
        if end - index < 4:
            raise CorruptBatch("lz4 data ends early")
        word = i64(read_i32_le(data, index)) & 0xFFFFFFFF
        index += 4
        if word == 0:
            break
        size = word & 0x7FFFFFFF
        if size > end - index or size > frame.block_size:
            raise CorruptBatch(f"lz4 block of {size} bytes does not fit")
        if word > 0x7FFFFFFF:
            most += size
        else:
            # One byte makes at most 255.
            most += min(frame.block_size, 255 * size)
        index += size + frame.block_checksum_size
    index += frame.content_checksum_size
    if index > end:
        raise CorruptBatch("lz4 data ends early")
    if frame.content_size > most:
        raise CorruptBatch(f"lz4 frame declares {frame.content_size} bytes, its blocks hold at most {most}")
    if frame.content_size > limit:
        raise DecompressedTooLarge(f"lz4 frame declares {frame.content_size} bytes, the limit is {limit}")
    output = bytearray(min(most, i64(limit)))
    source = memoryview(data)[:index] if index < end else memoryview(data)
    try:
        written: int = cramjam.lz4.decompress_into(source, output)
    except cramjam.DecompressionError as error:
        raise _broken_or_too_large("lz4", most, limit, error) from error
    return bytes(output) if written == len(output) else bytes(memoryview(output)[:written])


def _broken_or_too_large(name: str, most: int, limit: int, error: Exception) -> Exception:
    """A stream that could hold more than the limit may have failed for lack of room: the error's text tells."""
    if most > limit and "whole buffer" in str(error):
        return DecompressedTooLarge(f"{name} data has more than {limit} bytes")
    return CorruptBatch(f"{name} data is broken: {error}")


def _compress_zstd(data: bytes, level: int) -> bytes:
    """Flushed before it is finished: the frame then ends with an empty block, byte for byte as Java's stream does."""
    compressor = cramjam.zstd.Compressor(level=ZSTD_DEFAULT_LEVEL if level == DEFAULT_LEVEL else level)
    compressor.compress(data)
    flushed = bytes(compressor.flush())
    return flushed + bytes(compressor.finish())


def _decompress_zstd(data: bytes, limit: int) -> bytes:
    most = _most_in_zstd(data, limit)
    if most == 0:
        return b""
    output = bytearray(min(most, limit))
    try:
        written: int = cramjam.zstd.decompress_into(data, output)
    except cramjam.DecompressionError as error:
        raise _broken_or_too_large("zstd", most, limit, error) from error
    return bytes(output) if written == len(output) else bytes(memoryview(output)[:written])


def _most_in_zstd(data: bytes, limit: int) -> int:
    """At most this many bytes can come out: what the frames declare, or else a full block for each of their blocks."""
    index: i64 = 0
    end = i64(len(data))
    most: i64 = 0
    while index < end:
        if end - index < 8:
            raise CorruptBatch("zstd data ends early")
        magic = i64(read_i32_le(data, index)) & 0xFFFFFFFF
        if magic & 0xFFFFFFF0 == 0x184D2A50:
            index += 8 + (i64(read_i32_le(data, index + 4)) & 0xFFFFFFFF)
            if index > end:
                raise CorruptBatch("zstd data ends early")
            continue
        if magic != 0xFD2FB528:
            raise CorruptBatch("zstd data does not start with the frame magic")
        in_frame, index = _zstd_frame(data, index + 4, end, limit)
        most += in_frame
    return int(most)


def _zstd_frame(data: bytes, index: i64, end: i64, limit: i64) -> tuple[i64, i64]:
    """The most that the frame holds, and the index behind it; `index` is that of the frame's descriptor."""
    descriptor = i64(data[index])
    index += 1
    single_segment = descriptor & 0x20 != 0
    block_max: i64 = ZSTD_BLOCK_SIZE_MAX
    if not single_segment:
        window_code = i64(data[index])
        index += 1
        # Not `1 << …`: compiled, a shift of a constant has only 32 bits.
        window_base: i64 = 1
        window_base <<= 10 + (window_code >> 3)
        window = window_base + (window_base >> 3) * (window_code & 7)
        if window > max(limit, i64(ZSTD_WINDOW_MAX)):
            raise DecompressedTooLarge(f"zstd window of {window} bytes is larger than {ZSTD_WINDOW_MAX}")
        block_max = min(block_max, window)
    index += _zstd_dictionary_size(descriptor)
    content_size: i64 = -1
    field_size = _zstd_content_field_size(descriptor)
    if field_size > 0:
        content_size = 256 if field_size == 2 else 0
        for place in range(field_size):
            content_size += i64(data[index + place]) << (8 * place)
        index += field_size
    most, index = _zstd_blocks(data, index, end, block_max)
    if descriptor & 0x04:
        index += 4
    if index > end:
        raise CorruptBatch("zstd data ends early")
    if content_size < 0:
        return most, index
    if content_size > limit:
        raise DecompressedTooLarge(f"zstd frame declares {content_size} bytes, the limit is {limit}")
    # A frame that declares more than its blocks can hold is broken; the library will say so.
    return min(most, content_size), index


def _zstd_dictionary_size(descriptor: i64) -> i64:
    code = descriptor & 3
    return 4 if code == 3 else code


def _zstd_content_field_size(descriptor: i64) -> i64:
    code = descriptor >> 6
    if code == 0:
        return 1 if descriptor & 0x20 else 0
    return i64(1) << code


def _zstd_blocks(data: bytes, index: i64, end: i64, block_max: i64) -> tuple[i64, i64]:
    most: i64 = 0
    while True:
        if end - index < 3:
            raise CorruptBatch("zstd data ends early")
        word = i64(data[index]) | (i64(data[index + 1]) << 8) | (i64(data[index + 2]) << 16)
        index += 3
        kind = (word >> 1) & 3
        size = word >> 3
        if kind == 2:
            most += block_max
            index += size
        else:
            most += min(size, block_max)
            # A run stores one byte, whatever its length.
            index += 1 if kind == 1 else size
        if index > end:
            raise CorruptBatch("zstd data ends early")
        if word & 1:
            return most, index
