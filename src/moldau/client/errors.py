"""The client's exceptions: one class per error code of the protocol, and those of the client itself.

The classes of the protocol's errors have the names of Kafka's own, with Error for Exception, and are made from the
error table when they are first asked for: `except errors.TopicExistsError`. Each error says whether the same request
may be tried again (retriable) and whether the client is of no further use (fatal).
"""

from __future__ import annotations

import enum

from moldau.protocol.errors import (
    BY_CODE,
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_NOT_AVAILABLE,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    FENCED_INSTANCE_ID,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    ILLEGAL_SASL_STATE,
    INVALID_CONFIG,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_RECORD,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_REQUIRED_ACKS,
    INVALID_TOPIC_EXCEPTION,
    NETWORK_EXCEPTION,
    NOT_COORDINATOR,
    OFFSET_OUT_OF_RANGE,
    PRODUCER_FENCED,
    RECORD_LIST_TOO_LARGE,
    REQUEST_TIMED_OUT,
    SASL_AUTHENTICATION_FAILED,
    THROTTLING_QUOTA_EXCEEDED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
    default_text,
    error_name,
    error_row,
)

_FATAL = {CLUSTER_AUTHORIZATION_FAILED, PRODUCER_FENCED, UNSUPPORTED_VERSION}


class Category(enum.Enum):
    """What a transactional producer is to do about an error, as the classes of Java's exceptions say (KIP-1050)."""

    # The same may be tried again, and the client does so itself.
    RETRIABLE = "retriable"
    # The same, after metadata or the coordinator were looked up anew.
    REFRESH_RETRIABLE = "refresh-retriable"
    # The transaction must be aborted; the producer can go on.
    ABORTABLE = "abortable"
    # The producer (and the consumer) must be closed and made anew.
    APPLICATION_RECOVERABLE = "application-recoverable"
    # A setting, a permission or the data is wrong: people must act.
    INVALID_CONFIGURATION = "invalid-configuration"


_APPLICATION_RECOVERABLE = {
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    PRODUCER_FENCED,
    UNKNOWN_MEMBER_ID,
}
_INVALID_CONFIGURATION = {
    CLUSTER_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_SASL_STATE,
    INVALID_CONFIG,
    INVALID_RECORD,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUIRED_ACKS,
    INVALID_TOPIC_EXCEPTION,
    RECORD_LIST_TOO_LARGE,
    SASL_AUTHENTICATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
}
_REFRESH_COORDINATOR = {COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR}


def _category(code: int) -> Category | None:
    row = error_row(code)
    if row.metadata or code in _REFRESH_COORDINATOR:
        return Category.REFRESH_RETRIABLE
    if row.retriable:
        return Category.RETRIABLE
    if code == TRANSACTION_ABORTABLE:
        return Category.ABORTABLE
    if code in _APPLICATION_RECOVERABLE:
        return Category.APPLICATION_RECOVERABLE
    return Category.INVALID_CONFIGURATION if code in _INVALID_CONFIGURATION else None


class ClientError(Exception):
    """Everything that the client raises on purpose; message is a sentence for people."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.message!r})"

    @property
    def name(self) -> str:
        """The name of the error in the protocol, such as TOPIC_ALREADY_EXISTS."""
        return error_name(self.code)

    @property
    def retriable(self) -> bool:
        """Whether the same may succeed when it is tried again."""
        return error_row(self.code).retriable

    @property
    def fatal(self) -> bool:
        """Whether the client is of no further use after it."""
        return self.code in _FATAL

    @property
    def category(self) -> Category | None:
        """What there is to do about it (KIP-1050); None where the error has no category, and closing is all."""
        return _category(self.code)

    @property
    def refresh_metadata(self) -> bool:
        """The error says that what the client knows of the cluster is old."""
        return error_row(self.code).metadata


class NetworkError(ClientError):
    """A broker cannot be reached, or the connection was lost; what became of a request is not known."""

    def __init__(self, message: str) -> None:
        super().__init__(NETWORK_EXCEPTION, message)


class NoBrokerError(NetworkError):
    """None of the brokers that are known could be reached."""

    def __init__(self, message: str, unresolved: bool = False) -> None:
        super().__init__(message)
        # None of their names stands for an address.
        self.unresolved = unresolved


class AdvertisedAddressError(NetworkError):
    """A broker cannot be reached at the address that the cluster told us for it."""

    def __init__(self, message: str, cause: NetworkError, retriable: bool = True) -> None:
        super().__init__(message)
        self.cause = cause
        self._retriable = retriable

    @property
    def retriable(self) -> bool:
        """False once a name stood for nothing for some seconds and the user does not want to wait longer."""
        return self._retriable


class RequestTimeoutError(ClientError):
    """Something took longer than its timeout allows."""

    def __init__(self, message: str) -> None:
        super().__init__(REQUEST_TIMED_OUT, message)


class UnsupportedVersionError(ClientError):
    """The broker does not offer the request, or not in a version that this client speaks."""

    def __init__(self, message: str) -> None:
        super().__init__(UNSUPPORTED_VERSION, message)


class ProtocolError(ClientError):
    """What arrived is not in Kafka's protocol; asking again would not help."""

    def __init__(self, message: str) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, message)


class TlsError(ClientError):
    """One side does not trust the other: certificates, names or protocols do not fit. Asking again would not help."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_CONFIG, message)


class ConfigError(ClientError):
    """A setting of the client is unknown, or has a value that is not allowed."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_CONFIG, message)


class ClosedError(ClientError):
    """The client was closed."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_REQUEST, message)


class LogTruncationError(ClientError):
    """The log was truncated before the position, and there is no reset policy; offset is where the log agrees still."""

    def __init__(self, message: str, partition: object, offset: int) -> None:
        super().__init__(OFFSET_OUT_OF_RANGE, message)
        self.partition = partition
        self.offset = offset


class CommitFailedError(ClientError):
    """Offsets were not committed because this consumer is not a member of the group any more."""

    def __init__(self, message: str, code: int = UNKNOWN_MEMBER_ID) -> None:
        super().__init__(code, message)

    @property
    def retriable(self) -> bool:
        """False: the partitions are others' now."""
        return False


class RetriableCommitFailedError(ClientError):
    """An asynchronous commit failed in a way that may pass: the user may commit again (later offsets, if any)."""

    def __init__(self, cause: ClientError) -> None:
        super().__init__(cause.code, f"The offsets were not committed, and may be once more: {cause.message}")
        self.cause = cause

    @property
    def retriable(self) -> bool:
        """True: that is what it says."""
        return True


class NoOffsetForPartitionError(ClientError):
    """Nothing is committed for the partitions, and there is no reset policy that says where to begin."""

    def __init__(self, message: str, partitions: tuple[object, ...]) -> None:
        super().__init__(OFFSET_OUT_OF_RANGE, message)
        self.partitions = partitions


class TransactionCallError(ClientError):
    """A method was called that the state of the producer's transaction does not allow now."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_REQUEST, message)


class TransactionAbortedError(ClientError):
    """The record was not sent because its transaction was aborted before."""

    def __init__(self) -> None:
        super().__init__(TRANSACTION_ABORTABLE, "The record was not sent: its transaction was aborted.")


class RecordDeserializationError(ClientError):
    """A record's key or value is not what the consumer's deserializer takes; record has the bytes."""

    def __init__(self, message: str, record: object) -> None:
        super().__init__(INVALID_RECORD, message)
        self.record = record


class WakeupError(ClientError):
    """wakeup() was called while something else than poll() waited."""

    def __init__(self) -> None:
        super().__init__(INVALID_REQUEST, "The call was ended by wakeup().")


class ThrottlingQuotaExceededError(ClientError):
    """The controller's quota for creating and deleting partitions is used up, for throttle_time_ms."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.throttle_time_ms = 0


_classes: dict[int, type[ClientError]] = {THROTTLING_QUOTA_EXCEEDED: ThrottlingQuotaExceededError}


def error_for(code: int, message: str | None = None) -> ClientError:
    """The exception for an error code that a broker sent; the table's text where the broker sent none."""
    text = message or default_text(code) or f"The broker returned {error_name(code)}."
    if code == NETWORK_EXCEPTION:
        return NetworkError(text)
    if code == REQUEST_TIMED_OUT:
        return RequestTimeoutError(text)
    if code == UNSUPPORTED_VERSION:
        return UnsupportedVersionError(text)
    return _class_for(code)(code, text)


def _class_for(code: int) -> type[ClientError]:
    found = _classes.get(code)
    if found is None:
        name = error_row(code).exception.removesuffix("Exception").removesuffix("Error") or "Unknown"
        found = _classes[code] = type(f"{name}Error", (ClientError,), {"__module__": __name__})
    return found


def __getattr__(name: str) -> type[ClientError]:
    stem = name.removesuffix("Error")
    if stem != name:
        for code, row in BY_CODE.items():
            if row.exception.removesuffix("Exception").removesuffix("Error") == stem:
                return _class_for(code)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
