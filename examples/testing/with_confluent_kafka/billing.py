"""An application with confluent-kafka: reads orders, writes an invoice for each, and commits what it has done."""

import json

from confluent_kafka import Consumer, Producer


class Billing:
    def __init__(self, servers: str, orders: str, invoices: str) -> None:
        self._invoices = invoices
        self._producer = Producer({"bootstrap.servers": servers, "client.id": "billing", "linger.ms": 0})
        settings = {"bootstrap.servers": servers, "client.id": "billing", "group.id": f"billing-{orders}"}
        self._consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        self._consumer.subscribe([orders])

    def step(self) -> bool:
        """Handles one order, if there is one."""
        message = self._consumer.poll(0.2)
        if message is None or message.error():
            return False
        order = json.loads(message.value())
        invoice = {"order": order["id"], "total": order["price"] * order["count"]}
        self._producer.produce(self._invoices, json.dumps(invoice), key=str(order["id"]))
        self._producer.flush()
        self._consumer.commit(message, asynchronous=False)
        return True

    def close(self) -> None:
        self._consumer.close()
