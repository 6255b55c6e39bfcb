"""Frames come out whole and in order, however the bytes arrive, and a size field alone costs nothing."""

import random
import tracemalloc

import pytest

from moldau.net.framing import FrameError, FrameReader, Scratch


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def feed(reader: FrameReader, stream: bytes, chunk: int) -> list[bytes]:
    bodies = []
    position = 0
    while position < len(stream):
        window = reader.window()
        count = min(len(window), chunk, len(stream) - position)
        window[:count] = stream[position : position + count]
        position += count
        bodies += [data[start:end] for data, start, end in reader.received(count)]
    return bodies


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, 64, 1000, 10**6])
def test_frames_come_out_whole_however_the_bytes_arrive(chunk: int) -> None:
    rng = random.Random(chunk)
    sizes = [0, 1, 3, 100, 1023, 1024, 1025, 5000] if chunk < 64 else [0, 1, 1024, 1025, 5000, 300_000, 0, 70_000]
    bodies = [rng.randbytes(size) for size in sizes]
    reader = FrameReader(Scratch(1024), 10**6)
    assert feed(reader, framed(*bodies), chunk) == bodies
    assert feed(reader, framed(*reversed(bodies)), chunk) == bodies[::-1]


def test_an_oversized_frame_is_refused() -> None:
    reader = FrameReader(Scratch(1024), 1000)
    with pytest.raises(FrameError, match=r"socket\.request\.max\.bytes"):
        feed(reader, (1001).to_bytes(4, "big"), 10)


def test_a_negative_size_is_refused() -> None:
    reader = FrameReader(Scratch(1024), 1000)
    with pytest.raises(FrameError):
        feed(reader, b"\xff\xff\xff\xff", 10)


def test_the_announcement_of_a_large_frame_allocates_little() -> None:
    reader = FrameReader(Scratch(1024), 10**9)
    tracemalloc.start()
    assert feed(reader, (900_000_000).to_bytes(4, "big") + b"x" * 2000, 500) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
