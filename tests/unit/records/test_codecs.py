"""Codecs: what Kafka and its clients write is read, what we write is theirs, and nothing outgrows its limit."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.records.batch import CorruptBatch
from moldau.records.codecs import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    DecompressedTooLarge,
    codec_name,
    compress,
    decompress,
    has_linked_lz4_blocks,
)
from tests.unit.records import raw_batches, samples

CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
PACKED = [GZIP, SNAPPY, LZ4, ZSTD]
LIMIT = 1 << 24
WORDS = b"the quick brown fox jumps over the lazy dog ".split()


def text(size: int, seed: int = 1) -> bytes:
    chooser = random.Random(seed)
    return b" ".join(chooser.choice(WORDS) for _ in range(size // 3))[:size]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 100, 32768, 32769, 65536, 65537, 300_000])
def test_what_is_compressed_comes_back(codec: int, size: int) -> None:
    """Sizes around the block sizes of the codecs, compressible and not."""
    for data in (text(size), random.Random(size).randbytes(size)):
        assert decompress(codec, compress(codec, data), LIMIT) == data


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(CODECS), st.binary(max_size=5000))
def test_any_bytes_come_back(codec: int, data: bytes) -> None:
    """Also within a limit that is exactly their size."""
    assert decompress(codec, compress(codec, data), max(1, len(data))) == data


@pytest.mark.parametrize(
    ("codec", "levels"), [(GZIP, [-1, *range(1, 10)]), (LZ4, [1, 2, 3, 9, 12, 17]), (ZSTD, [-5, 1, 3, 19])]
)
def test_every_level_comes_back(codec: int, levels: list[int]) -> None:
    """Levels as Kafka's compression.<codec>.level allows them; the highest is not larger than the lowest."""
    data = text(150_000)
    sizes = []
    for level in levels:
        packed = compress(codec, data, level)
        sizes.append(len(packed))
        assert decompress(codec, packed, LIMIT) == data
    assert sizes[-1] <= sizes[0]


@pytest.mark.parametrize("codec", PACKED)
def test_real_batches_are_read_and_written_alike(codec: int) -> None:
    """The body of a batch that the Java client compressed: read it, write it, get the same bytes (gzip: its frame)."""
    body = samples.COMPRESSED_LOGS[codec][61:]
    data = decompress(codec, body, LIMIT)
    assert data.count(b"hello") == 40
    ours = compress(codec, data)
    if codec == GZIP:
        assert ours[:10] == body[:10]
        assert ours[-8:] == body[-8:]
        assert compress(codec, data, 6) == body
    else:
        assert ours == body


def test_independent_decoders_read_what_we_write() -> None:
    """zlib, and the frame decoders of another library."""
    data = text(200_000)
    assert zlib.decompress(compress(GZIP, data), 31) == data
    for level in (9, 12):
        assert bytes(cramjam.lz4.decompress(compress(LZ4, data, level))) == data
    assert bytes(cramjam.zstd.decompress(compress(ZSTD, data))) == data


def test_the_framings_of_other_clients_are_read() -> None:
    """Raw snappy, linked lz4 blocks with checksums, zstd with and without a content size, gzip in two members."""
    data = text(200_000)
    half = len(data) // 2
    frames = [
        (SNAPPY, raw_batches.raw_snappy(data)),
        (SNAPPY, raw_batches.snappy(data)),
        (SNAPPY, raw_batches.snappy(data[:half]) + raw_batches.snappy(data[half:])),
        (LZ4, raw_batches.lz4(data, linked=True)),
        (LZ4, raw_batches.lz4(data, linked=False)),
        (ZSTD, raw_batches.zstd(data)),
        (ZSTD, bytes(cramjam.zstd.compress(data, 3))),
        (ZSTD, raw_batches.zstd(data[:half]) + b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + raw_batches.zstd(data[half:])),
        (GZIP, raw_batches.gzip(data[:half]) + raw_batches.gzip(data[half:])),
    ]
    for codec, frame in frames:
        assert decompress(codec, frame, len(data)) == data
    assert has_linked_lz4_blocks(raw_batches.lz4(data, linked=True), 0)
    assert not has_linked_lz4_blocks(compress(LZ4, data), 0)


def header_checksum(descriptor: bytes) -> int:
    """The second byte of the xxh32 of a frame descriptor of less than sixteen bytes."""
    mask = 0xFFFFFFFF
    value = (374761393 + len(descriptor)) & mask
    index = 0
    while index + 4 <= len(descriptor):
        value = (value + int.from_bytes(descriptor[index : index + 4], "little") * 3266489917) & mask
        value = (((value << 17) | (value >> 15)) & mask) * 668265263 & mask
        index += 4
    for byte in descriptor[index:]:
        value = (value + byte * 374761393) & mask
        value = (((value << 11) | (value >> 21)) & mask) * 2654435761 & mask
    value = (value ^ (value >> 15)) * 2246822519 & mask
    value = (value ^ (value >> 13)) * 3266489917 & mask
    return ((value ^ (value >> 16)) >> 8) & 0xFF


def test_lz4_frames_with_a_content_size_are_read() -> None:
    """The size is believed only as far as the blocks can hold it."""
    for declared in (10, 11, 1 << 40):
        descriptor = bytes([0x68, 0x40]) + declared.to_bytes(8, "little")
        block = (10 | 0x80000000).to_bytes(4, "little") + b"0123456789"
        frame = b"\x04\x22\x4d\x18" + descriptor + bytes([header_checksum(descriptor)]) + block + bytes(4)
        if declared == 10:
            assert decompress(LZ4, frame, 10) == b"0123456789"
            with pytest.raises(DecompressedTooLarge):
                decompress(LZ4, frame, 9)
        else:
            with pytest.raises(CorruptBatch):
                decompress(LZ4, frame, LIMIT)
    assert header_checksum(b"\x60\x40") == 0x82


def test_trailing_bytes_are_treated_as_kafka_treats_them() -> None:
    """Ignored behind gzip and lz4, and behind snappy when too short for a length; refused behind zstd."""
    data = text(1000)
    assert decompress(GZIP, compress(GZIP, data) + b"junkjunk", LIMIT) == data
    assert decompress(LZ4, compress(LZ4, data) + b"junkjunk", LIMIT) == data
    assert decompress(SNAPPY, compress(SNAPPY, data) + b"j", LIMIT) == data
    for codec in (SNAPPY, ZSTD):
        with pytest.raises(CorruptBatch):
            decompress(codec, compress(codec, data) + b"junkjunk", LIMIT)


@pytest.mark.parametrize("codec", PACKED)
def test_garbage_and_cut_streams_are_corrupt(codec: int) -> None:
    """No cut of a stream is read as a shorter one, and no garbage crashes; empty zstd data is an empty stream."""
    data = text(500)
    packed = compress(codec, data)
    for cut in range(1, len(packed)):
        if codec == SNAPPY and 16 <= cut < 20:
            # A xerial stream has no end mark: without its blocks it is an empty one.
            assert decompress(codec, packed[:cut], LIMIT) == b""
            continue
        with pytest.raises(CorruptBatch):
            decompress(codec, packed[:cut], LIMIT)
    with pytest.raises(CorruptBatch):
        decompress(codec, b"garbage that is nothing at all", LIMIT)
    with pytest.raises(CorruptBatch):
        decompress(7, packed, LIMIT)


@pytest.mark.parametrize("codec", PACKED)
def test_flipped_bits_raise_nothing_but_the_two_errors(codec: int) -> None:
    """A broken stream is refused or read as something within the limit; it never escapes as another error."""
    packed = bytearray(compress(codec, text(600)))
    for index in range(len(packed)):
        for flip in (0x01, 0x80):
            packed[index] ^= flip
            try:
                assert len(decompress(codec, bytes(packed), 1200)) <= 1200
            except (CorruptBatch, DecompressedTooLarge):
                pass
            packed[index] ^= flip


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PACKED), st.binary(max_size=200))
def test_random_bytes_behind_a_good_magic_are_survived(codec: int, tail: bytes) -> None:
    """Hostile frames that get past the first check."""
    magic = {GZIP: b"\x1f\x8b\x08", SNAPPY: b"\x82SNAPPY\x00", LZ4: b"\x04\x22\x4d\x18", ZSTD: b"\x28\xb5\x2f\xfd"}
    try:
        assert len(decompress(codec, magic[codec] + tail, 1000)) <= 1000
    except (CorruptBatch, DecompressedTooLarge):
        pass


@pytest.mark.parametrize("codec", PACKED)
def test_one_byte_over_the_limit_is_too_large(codec: int) -> None:
    """The limit is exact."""
    for data in (text(100_000), bytes(100_000)):
        packed = compress(codec, data)
        assert decompress(codec, packed, len(data)) == data
        with pytest.raises(DecompressedTooLarge):
            decompress(codec, packed, len(data) - 1)


BOMBS = """
import resource, sys, zlib, cramjam
from moldau.records.codecs import DecompressedTooLarge, compress, decompress
codec = int(sys.argv[1])
size = 64 << 20
if codec == 1:
    stream = zlib.compressobj(1, 8, 31)
    bomb = b"".join([stream.compress(bytes(1 << 20)) for _ in range(100)]) + stream.flush()
elif codec == 2:
    block = compress(2, bytes(32768))
    bomb = block[:16] + block[16:] * (size // 32768)
elif codec == 3:
    frame = compress(3, bytes(65536))
    bomb = frame[:7] + frame[7:-4] * (size // 65536) + bytes(4)
else:
    # 8192 run blocks of 128 KiB each: one gigabyte in 32 KB.
    run = ((131072 << 3) | 2).to_bytes(3, "little") + b"x"
    last = ((131072 << 3) | 3).to_bytes(3, "little") + b"x"
    bomb = bytes.fromhex("28b52ffd0058") + run * 8191 + last
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, bomb, 4 << 20)
    print("read")
except DecompressedTooLarge:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_costs_no_more_memory_than_the_limit(codec: int) -> None:
    """64 MB to 1 GB inside, limit 4 MB: the process grows by little more than the limit."""
    result = subprocess.run(
        [sys.executable, "-c", BOMBS, str(codec)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert int(result.stdout) <= 12


def test_declared_sizes_are_not_believed() -> None:
    """A few bytes that announce gigabytes are refused without the memory for them."""
    with pytest.raises(CorruptBatch):
        decompress(SNAPPY, b"\xff\xff\xff\x7f" + b"\x00" * 8, 1 << 40)
    with pytest.raises(DecompressedTooLarge):
        decompress(ZSTD, bytes.fromhex("28b52ffde0ffffffff0f00000001000000"), 1 << 20)
    huge_window = bytes.fromhex("28b52ffd00f8010000")
    with pytest.raises(DecompressedTooLarge):
        decompress(ZSTD, huge_window, 1 << 20)


def test_codecs_have_names() -> None:
    """As compression.type spells them."""
    assert [codec_name(codec) for codec in CODECS] == ["none", "gzip", "snappy", "lz4", "zstd"]
    with pytest.raises(ValueError, match="unknown"):
        compress(9, b"")
