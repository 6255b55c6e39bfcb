"""An application with kafka-python: writes who did what, and counts it again."""

from collections import Counter

from kafka import KafkaConsumer, KafkaProducer


def write_audit(servers: str, topic: str, entries: list[tuple[str, str]]) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, client_id="audit", acks="all", retries=10)
    sent = [producer.send(topic, action.encode(), key=user.encode()) for user, action in entries]
    for future in sent:
        future.get(timeout=30)
    producer.close()


def count_actions(servers: str, topic: str) -> Counter[str]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=servers, client_id="audit", auto_offset_reset="earliest", consumer_timeout_ms=1500
    )
    counted = Counter(record.key.decode() for record in consumer)
    consumer.close()
    return counted
