"""Frames come out whole and in order, however the bytes arrive, and a size field alone costs nothing."""

import random
import tracemalloc
from collections.abc import Callable

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


def feed_pieces(reader: FrameReader, stream: bytes, chunk: int) -> list[bytes]:
    """As a connection does it: the beginning of a large frame is given as it is."""
    bodies = []
    position = 0
    while position < len(stream):
        wanted = reader.piece_wanted
        if wanted > 0:
            piece = stream[position : position + min(wanted, chunk)]
            position += len(piece)
            frames = reader.received_piece(piece)
        else:
            window = reader.window()
            count = min(len(window), chunk, len(stream) - position)
            window[:count] = stream[position : position + count]
            position += count
            frames = reader.received(count)
        bodies += [data[start:end] for data, start, end in frames]
    return bodies


@pytest.mark.parametrize("feed", [feed, feed_pieces])
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, 64, 1000, 10**6])
def test_frames_come_out_whole_however_the_bytes_arrive(
    chunk: int, feed: Callable[[FrameReader, bytes, int], list[bytes]]
) -> None:
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


def test_a_large_frame_that_follows_another_is_not_copied() -> None:
    reader = FrameReader(Scratch(1024), 10**9)
    body = bytes(100_000)
    assert feed_pieces(reader, framed(body), 10**6) == [body]
    window = reader.window()
    assert len(window) == 4, "its size is read alone"
    window[:] = len(body).to_bytes(4, "big")
    assert reader.received(4) == []
    assert reader.piece_wanted == len(body)
    ((data, start, end),) = reader.received_piece(body)
    assert data is body
    assert (start, end) == (0, len(body))
