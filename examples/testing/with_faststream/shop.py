"""An application with FastStream: every paid order is shipped."""

from faststream import FastStream
from faststream.kafka import KafkaBroker


def make_application(servers: str, paid: str, shipped: str) -> FastStream:
    broker = KafkaBroker(servers, client_id="shop")

    @broker.subscriber(paid, group_id=f"shop-{paid}", auto_offset_reset="earliest")
    @broker.publisher(shipped)
    async def ship(order: dict[str, int]) -> dict[str, int]:
        return {"shipped": order["id"]}

    return FastStream(broker)
