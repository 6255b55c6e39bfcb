"""Which verb of the controller serves which request: for requests that come over a socket and for the node's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.protocol import api_table as api

RequestVerb = Callable[[Controller, Any, int], Result]
"""Called with the controller, the request and `now_ms`."""

VERBS: Final[dict[int, RequestVerb]] = {
    api.CREATE_TOPICS: Controller.create_topics,
    api.ALTER_CONFIGS: Controller.alter_configs,
    api.INCREMENTAL_ALTER_CONFIGS: Controller.incremental_alter_configs,
    api.ALTER_PARTITION: Controller.alter_partition,
    api.BROKER_REGISTRATION: Controller.register_broker,
    api.BROKER_HEARTBEAT: Controller.broker_heartbeat,
    api.UNREGISTER_BROKER: Controller.unregister_broker,
    api.ALLOCATE_PRODUCER_IDS: Controller.allocate_producer_ids,
    api.CONTROLLER_REGISTRATION: Controller.register_controller,
    api.ASSIGN_REPLICAS_TO_DIRS: Controller.assign_replicas_to_dirs,
}
