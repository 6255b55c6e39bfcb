"""The hash XXH3 (64 bits, seed 0), with which a group remembers the metadata of its topics (KIP-1101).

Only small inputs are hashed, and rarely: when a topic that some group reads has changed. Numbers are unsigned inside.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_MASK: Final = (1 << 64) - 1
_MASK_32: Final = (1 << 32) - 1

_PRIME_32_1: Final = 0x9E3779B1
_PRIME_32_2: Final = 0x85EBCA77
_PRIME_32_3: Final = 0xC2B2AE3D
_PRIME_64_1: Final = 0x9E3779B185EBCA87
_PRIME_64_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME_64_3: Final = 0x165667B19E3779F9
_PRIME_64_4: Final = 0x85EBCA77C2B2AE63
_PRIME_64_5: Final = 0x27D4EB2F165667C5

_STRIPE_BYTES: Final = 64
_STRIPES_PER_BLOCK: Final = 16
_BLOCK_BYTES: Final = _STRIPE_BYTES * _STRIPES_PER_BLOCK

_read_64 = Struct("<Q").unpack_from
_read_32 = Struct("<I").unpack_from
_read_stripe = Struct("<8Q").unpack_from


def xxh3(data: bytes) -> int:
    """The hash as an unsigned number."""
    size = len(data)
    if size <= 16:
        return _hash_tiny(data, size)
    if size <= 128:
        return _hash_small(data, size)
    if size <= 240:
        return _hash_middle(data, size)
    return _hash_long(data, size)


def _secret(position: int) -> int:
    value: int = _read_64(_SECRET, position)[0]
    return value


def _word(data: bytes, position: int) -> int:
    value: int = _read_64(data, position)[0]
    return value


def _fold(first: int, second: int) -> int:
    """Both halves of the 128-bit product, combined."""
    product = first * second
    return (product ^ (product >> 64)) & _MASK


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * 0x165667919E3779F9 & _MASK
    return value ^ (value >> 32)


def _avalanche_64(value: int) -> int:
    value ^= value >> 33
    value = value * _PRIME_64_2 & _MASK
    value ^= value >> 29
    value = value * _PRIME_64_3 & _MASK
    return value ^ (value >> 32)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _hash_tiny(data: bytes, size: int) -> int:
    if size > 8:
        low = _word(data, 0) ^ _secret(24) ^ _secret(32)
        high = _word(data, size - 8) ^ _secret(40) ^ _secret(48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _MASK)
    if size >= 4:
        value = _read_32(data, size - 4)[0] + (_read_32(data, 0)[0] << 32) ^ _secret(8) ^ _secret(16)
        value ^= _rotate(value, 49) ^ _rotate(value, 24)
        value = value * 0x9FB21C651E98DF25 & _MASK
        value ^= (value >> 35) + size
        value = value * 0x9FB21C651E98DF25 & _MASK
        return int(value ^ (value >> 28))
    if size > 0:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
        flip = _read_32(_SECRET, 0)[0] ^ _read_32(_SECRET, 4)[0]
        return _avalanche_64(combined ^ flip)
    return _avalanche_64(_secret(56) ^ _secret(64))


def _mix(data: bytes, position: int, secret_position: int) -> int:
    """Sixteen bytes with sixteen bytes of the secret."""
    return _fold(
        _word(data, position) ^ _secret(secret_position), _word(data, position + 8) ^ _secret(secret_position + 8)
    )


def _hash_small(data: bytes, size: int) -> int:
    total = size * _PRIME_64_1
    # From the middle outwards; inputs of up to 32 bytes are their two ends.
    for step in range((size - 1) // 32, -1, -1):
        total += _mix(data, 16 * step, 32 * step)
        total += _mix(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total & _MASK)


def _hash_middle(data: bytes, size: int) -> int:
    total = size * _PRIME_64_1
    for step in range(8):
        total += _mix(data, 16 * step, 16 * step)
    total = _avalanche(total & _MASK)
    for step in range(8, size // 16):
        total += _mix(data, 16 * step, 16 * (step - 8) + 3)
    total += _mix(data, size - 16, 119)
    return _avalanche(total & _MASK)


def _hash_long(data: bytes, size: int) -> int:
    lanes = [
        _PRIME_32_3,
        _PRIME_64_1,
        _PRIME_64_2,
        _PRIME_64_3,
        _PRIME_64_4,
        _PRIME_32_2,
        _PRIME_64_5,
        _PRIME_32_1,
    ]
    blocks = (size - 1) // _BLOCK_BYTES
    for block in range(blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            _accumulate(lanes, data, block * _BLOCK_BYTES + stripe * _STRIPE_BYTES, 8 * stripe)
        _scramble(lanes)
    rest = blocks * _BLOCK_BYTES
    for stripe in range((size - 1 - rest) // _STRIPE_BYTES):
        _accumulate(lanes, data, rest + stripe * _STRIPE_BYTES, 8 * stripe)
    _accumulate(lanes, data, size - _STRIPE_BYTES, 121)
    total = size * _PRIME_64_1
    for pair in range(4):
        total += _fold(
            lanes[2 * pair] ^ _secret(11 + 16 * pair),
            lanes[2 * pair + 1] ^ _secret(19 + 16 * pair),
        )
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, position: int, secret_position: int) -> None:
    words = _read_stripe(data, position)
    keys = _read_stripe(_SECRET, secret_position)
    for lane in range(8):
        word = words[lane]
        mixed = word ^ keys[lane]
        lanes[lane ^ 1] = lanes[lane ^ 1] + word & _MASK
        lanes[lane] = lanes[lane] + (mixed & _MASK_32) * (mixed >> 32) & _MASK


def _scramble(lanes: list[int]) -> None:
    keys = _read_stripe(_SECRET, 128)
    for lane in range(8):
        value = lanes[lane]
        value ^= value >> 47
        value ^= keys[lane]
        lanes[lane] = value * _PRIME_32_1 & _MASK
