"""Plays a script about one consumer group: a command per line, what members and the log see below it.

    topic NAME PARTITIONS      delete NAME           (more partitions for a topic that exists)
    join NAME [topics=t,u] [regex=R] [instance=I] [assignor=A] [rebalance=MS] [rack=R] [version=V] [id=ID]
    beat NAME [epoch=N] [owned=t:0,1/u:0] [topics=t,u] [regex=R] [assignor=A] [id=ID]
    ack NAME                   (a heartbeat that tells what the member has)
    leave NAME [while]         (`while`: a static member that will be back)
    commit NAME TOPIC:PARTITION [epoch=N]            fetch NAME [epoch=N]
    cjoin NAME [topics=t] [owned=t:0,1] [protocols=range] [instance=I] [rebalance=MS] [session=MS] [id=ID] [type=T]
    csync NAME [OTHER=t:0,1/u:0 ...] [generation=N]  cbeat NAME [generation=N]   cleave NAME...   (the classic protocol)
    tick MS      show      describe      list      delete-group      restart
    fail CODE-NAME | fail none (appends)   set KEY VALUE (of the broker)   config KEY VALUE (of the group)

Members are called by their ids and use the epoch that they were told last.
"""

from __future__ import annotations

import itertools
from typing import Any

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from moldau.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
)
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.protocol.stored.group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue,
)
from tests.unit.coordinator.consumer_world import (
    GROUP,
    VERSION,
    Consumer,
    ConsumerWorld,
    show_member,
    show_partitions,
)

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 9, 5, 4, 5
EMBEDDED_VERSION = 3
SORTED_KINDS = ("  ", "TargetAssignmentMember", "CurrentMemberAssignment", "MemberMetadata")


class ClassicClient:
    """What a client of the classic protocol remembers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.instance_id: str | None = None
        self.generation = -1
        self.protocol = ""
        self.owned: list[TopicPartitions] = []
        self.options: dict[str, str] = {}


class Player:
    """See the module."""

    def __init__(self, world: ConsumerWorld | None = None) -> None:
        self.world = world or ConsumerWorld()
        self.members: dict[str, Consumer] = {}
        self.classics: dict[str, ClassicClient] = {}
        self.waiting: list[tuple[str, ClassicClient, Any]] = []
        self.values: dict[str, str] = {}

    def play(self, line: str) -> list[str]:
        command, *words = line.split()
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        try:
            lines = getattr(self, "do_" + command.replace("-", "_"))(plain, options) or []
        except KafkaError as error:
            lines = [f"{plain[0] if plain else command}: {error.name}: {error.message}"]
        self.check()
        lines += self.new_answers()
        lines += [f"log: {self.show_record(key, value)}" for key, value in self.world.new_records()]
        for client in self.classics.values():
            # Ids that a coordinator made are shown as the name of the client.
            if client.member_id:
                lines = [line.replace(client.member_id, client.name) for line in lines]
        return sorted_runs(lines)

    def check(self) -> None:
        """What must hold after every command."""
        if isinstance(self.world.machine.state.groups.get(GROUP), ConsumerGroup):
            self.world.check_owners()

    def member(self, name: str) -> Consumer:
        return self.members.setdefault(name, self.world.consumer(name))

    def shown(self, partitions: dict[bytes, Any], epochs: bool = False) -> str:
        return show_partitions(partitions, self.world.name_of, epochs)

    # Topics and settings

    def do_topic(self, words: list[str], options: dict[str, str]) -> None:
        self.world.topic(words[0], int(words[1]))

    def do_delete(self, words: list[str], options: dict[str, str]) -> None:
        self.world.delete(words[0])

    def do_set(self, words: list[str], options: dict[str, str]) -> None:
        self.values[words[0]] = words[1]
        values = {**single_node_values(), "log.dirs": "/data", "group.initial.rebalance.delay.ms": "0", **self.values}
        self.world.settings.update(BrokerConfig(values, warn=False))

    def do_config(self, words: list[str], options: dict[str, str]) -> None:
        self.world.configure(words[0], words[1] if len(words) > 1 else None)

    def do_fail(self, words: list[str], options: dict[str, str]) -> None:
        self.world.log.failure = None if words[0] == "none" else KafkaError(getattr(errors, words[0]))

    # Members

    def do_join(self, words: list[str], options: dict[str, str]) -> list[str]:
        member = self.member(words[0])
        member.instance_id = options.get("instance")
        member.epoch = 0
        member.owned = {}
        fields = self.fields(options)
        fields.setdefault("rebalance_timeout_ms", 300_000)
        fields.setdefault("topic_partitions", [])
        if "regex" not in options:
            fields.setdefault("subscribed_topic_names", ["t"])
        return self.send(member, words[0], options, fields)

    def do_beat(self, words: list[str], options: dict[str, str]) -> list[str]:
        return self.send(self.member(words[0]), words[0], options, self.fields(options))

    def do_ack(self, words: list[str], options: dict[str, str]) -> list[str]:
        member = self.member(words[0])
        return self.send(member, words[0], options, {"topic_partitions": member.owned_list()})

    def do_leave(self, words: list[str], options: dict[str, str]) -> list[str]:
        member = self.member(words[0])
        return self.send(member, words[0], options, {"member_epoch": -2 if "while" in words else -1})

    def fields(self, options: dict[str, str]) -> dict[str, Any]:
        """The fields of a request that the words of a command name; what they leave out is left out."""
        fields: dict[str, Any] = {}
        if "epoch" in options:
            fields["member_epoch"] = int(options["epoch"])
        if "topics" in options:
            fields["subscribed_topic_names"] = [name for name in options["topics"].split(",") if name]
        if "rebalance" in options:
            fields["rebalance_timeout_ms"] = int(options["rebalance"])
        if "owned" in options:
            fields["topic_partitions"] = self.partitions(options["owned"])
        for word, field in (("regex", "subscribed_topic_regex"), ("assignor", "server_assignor"), ("rack", "rack_id")):
            if word in options:
                fields[field] = options[word]
        return fields

    def partitions(self, text: str) -> list[TopicPartitions]:
        found: list[TopicPartitions] = []
        for part in text.split("/"):
            name, _, indexes = part.partition(":")
            if name:
                found.append(TopicPartitions(self.world.topic_id(name), [int(index) for index in indexes.split(",")]))
        return found

    def send(self, member: Consumer, name: str, options: dict[str, str], fields: dict[str, Any]) -> list[str]:
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": options.get("group", GROUP),
                "member_id": options.get("id", member.member_id),
                "member_epoch": member.epoch,
                "instance_id": member.instance_id,
                **fields,
            }
        )
        response = self.world.heartbeat(request, int(options.get("version", VERSION)))
        if "version" in options and not request.member_id:
            member.member_id = response.member_id
        member.epoch = response.member_epoch
        text = f"{name}: epoch={response.member_epoch}"
        if response.heartbeat_interval_ms not in (0, 5000):
            text += f" interval={response.heartbeat_interval_ms}"
        if response.assignment is not None:
            member.owned = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
            text += f" assignment={self.shown(member.owned)}"
        return [text]

    # Members of the classic protocol

    def classic(self, name: str) -> ClassicClient:
        return self.classics.setdefault(name, ClassicClient(name))

    def do_cjoin(self, words: list[str], options: dict[str, str]) -> None:
        client = self.classic(words[0])
        client.options.update({name: value for name, value in options.items() if name not in ("id", "owned")})
        known = client.options
        client.instance_id = known.get("instance")
        if "id" in options:
            client.member_id = options["id"]
        owned = self.partitions(options["owned"]) if "owned" in options else client.owned
        request = JoinGroupRequest(
            GROUP,
            int(known.get("session", 45_000)),
            int(known.get("rebalance", 300_000)),
            client.member_id,
            client.instance_id,
            known.get("type", "consumer"),
            [
                JoinGroupRequestProtocol(name, self.subscription(known.get("topics", "t").split(","), owned))
                for name in known.get("protocols", "range").split(",")
            ],
        )
        self.waiting.append(("join", client, self.world.ask_classic(request, JOIN_VERSION, client.name)))

    def do_csync(self, words: list[str], options: dict[str, str]) -> None:
        client = self.classic(words[0])
        generation = int(options.pop("generation", client.generation))
        rows = [
            SyncGroupRequestAssignment(self.classic(name).member_id, self.assignment(text))
            for name, text in options.items()
        ]
        request = SyncGroupRequest(
            GROUP, generation, client.member_id, client.instance_id, "consumer", client.protocol, rows
        )
        self.waiting.append(("sync", client, self.world.ask_classic(request, SYNC_VERSION, client.name)))

    def do_cbeat(self, words: list[str], options: dict[str, str]) -> None:
        client = self.classic(words[0])
        generation = int(options.get("generation", client.generation))
        request = HeartbeatRequest(GROUP, generation, client.member_id, client.instance_id)
        self.waiting.append(("beat", client, self.world.ask_classic(request, HEARTBEAT_VERSION, client.name)))

    def do_cleave(self, words: list[str], options: dict[str, str]) -> None:
        clients = [self.classic(name) for name in words]
        rows = [MemberIdentity(client.member_id, client.instance_id) for client in clients]
        request = LeaveGroupRequest(GROUP, members=rows)
        self.waiting.append(("leave", clients[0], self.world.ask_classic(request, LEAVE_VERSION, words[0])))

    def new_answers(self) -> list[str]:
        self.world.settle()
        lines: list[str] = []
        for entry in list(self.waiting):
            what, client, pending = entry
            answer = pending.take()
            if answer is not None:
                self.waiting.remove(entry)
                lines.append(f"{client.name}: {self.show_classic(client, what, answer)}")
        return lines

    def show_classic(self, client: ClassicClient, what: str, answer: Any) -> str:
        code = errors.error_name(answer.error_code) if answer.error_code else "ok"
        if what == "join":
            client.member_id = answer.member_id or client.member_id
            if answer.error_code:
                return code
            client.generation, client.protocol = answer.generation_id, answer.protocol_name
            leads = " leads" if answer.leader == answer.member_id else ""
            return f"joined generation={answer.generation_id} protocol={answer.protocol_name}{leads}"
        if what == "sync" and not answer.error_code:
            client.owned = self.read_assignment(answer.assignment)
            return f"synced assignment={self.shown({topic.topic_id: topic.partitions for topic in client.owned})}"
        if what == "leave" and not answer.error_code:
            return "left " + " ".join(
                errors.error_name(row.error_code) if row.error_code else "ok" for row in answer.members
            )
        return f"{what} {code}"

    def subscription(self, topics: list[str], owned: list[TopicPartitions]) -> bytes:
        rows = [SubscriptionTopicPartition(self.world.name_of(topic.topic_id), topic.partitions) for topic in owned]
        return encoded(ConsumerProtocolSubscription([name for name in topics if name], None, rows))

    def assignment(self, text: str) -> bytes:
        rows = self.partitions(text)
        return encoded(
            ConsumerProtocolAssignment(
                [AssignmentTopicPartition(self.world.name_of(topic.topic_id), topic.partitions) for topic in rows]
            )
        )

    def read_assignment(self, data: bytes) -> list[TopicPartitions]:
        if not data:
            return []
        reader = Reader(data)
        assignment = ConsumerProtocolAssignment.decode(reader, reader.int16())
        return [
            TopicPartitions(self.world.topic_id(row.topic), row.partitions) for row in assignment.assigned_partitions
        ]

    # Offsets

    def do_commit(self, words: list[str], options: dict[str, str]) -> list[str]:
        member = self.member(words[0])
        topic, partition = words[1].split(":")
        try:
            code = self.world.commit(
                GROUP,
                topic,
                int(partition),
                5,
                topic_id=self.world.topic_id(topic),
                version=int(options.get("version", 9)),
                member_id=options.get("id", member.member_id),
                generation_id_or_member_epoch=int(options.get("epoch", member.epoch)),
            )
        except KafkaError as error:
            code = error.code
        return [f"{words[0]}: {errors.error_name(code) if code else 'ok'}"]

    def do_fetch(self, words: list[str], options: dict[str, str]) -> list[str]:
        member = self.member(words[0])
        code = self.world.fetch_offsets(member.member_id, int(options.get("epoch", member.epoch)))
        return [f"{words[0]}: {errors.error_name(code) if code else 'ok'}"]

    # Time and looks

    def do_tick(self, words: list[str], options: dict[str, str]) -> None:
        self.world.sleep(int(words[0]))

    def do_restart(self, words: list[str], options: dict[str, str]) -> None:
        """Another broker leads, and knows what is in the log."""
        self.world.lead()

    def do_show(self, words: list[str], options: dict[str, str]) -> list[str]:
        group = self.world.machine.state.find_group(GROUP)
        if not isinstance(group, ConsumerGroup):
            return ["no group" if group is None else f"{group.kind} group {group.state_name()}"]
        lines = [f"{group.state_name()} epoch={group.group_epoch} assigned={group.assignment_epoch}"]
        lines += [f"  {show_member(group, member_id, self.world.name_of)}" for member_id in sorted(group.members)]
        lines += [f"  {regex} is {shown(found.topics)}" for regex, found in sorted(group.resolved_regexes.items())]
        return lines

    def do_describe(self, words: list[str], options: dict[str, str]) -> list[str]:
        group = self.world.describe()
        if group.error_code:
            return [f"{errors.error_name(group.error_code)}: {group.error_message}"]
        lines = [
            f"{group.group_state} epoch={group.group_epoch} assigned={group.assignment_epoch} by={group.assignor_name}"
        ]
        for member in group.members:
            has = {topic.topic_id: topic.partitions for topic in member.assignment.topic_partitions}
            target = {topic.topic_id: topic.partitions for topic in member.target_assignment.topic_partitions}
            lines.append(
                f"  {member.member_id} epoch={member.member_epoch} instance={member.instance_id} rack={member.rack_id} "
                f"topics={shown(member.subscribed_topic_names)} regex={member.subscribed_topic_regex or '-'} "
                f"type={member.member_type} has={self.shown(has)} target={self.shown(target)}"
            )
        return lines

    def do_delete_group(self, words: list[str], options: dict[str, str]) -> list[str]:
        return [errors.error_name(code) for code in self.world.delete_group()]

    # Records

    def show_record(self, key: Message, value: Message | None) -> str:
        """One record in a line: what it is about, and what it says."""
        kind = type(key).__name__.removesuffix("Key").removeprefix("ConsumerGroup")
        who = getattr(key, "member_id", None) or getattr(key, "regular_expression", "")
        text = f"{kind} {who}".rstrip()
        if value is None:
            return f"{text} removed"
        return f"{text} {self.show_value(value)}".rstrip()

    def show_value(self, value: Any) -> str:
        if isinstance(value, ConsumerGroupMetadataValue):
            return f"epoch={value.epoch}"
        if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
            return f"epoch={value.assignment_epoch}"
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            return show_subscription(value)
        if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
            return self.shown({topic.topic_id: topic.partitions for topic in value.topic_partitions})
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            return (
                f"epoch={value.previous_member_epoch}->{value.member_epoch} state={value.state} "
                f"has={self.show_current(value.assigned_partitions)} "
                f"gives={self.show_current(value.partitions_pending_revocation)}"
            )
        if isinstance(value, GroupMetadataValue):
            members = [f"{one.member_id}={self.show_classic_assignment(one.assignment)}" for one in value.members]
            return f"generation={value.generation} protocol={value.protocol} leader={value.leader} {' '.join(members)}"
        if isinstance(value, ConsumerGroupRegularExpressionValue):
            return f"is {shown(value.topics)}"
        return ""

    def show_classic_assignment(self, data: bytes) -> str:
        return self.shown({topic.topic_id: topic.partitions for topic in self.read_assignment(data)})

    def show_current(self, topics: list[Any]) -> str:
        partitions = {
            topic.topic_id: dict(zip(topic.partitions, topic.assignment_epochs, strict=True)) for topic in topics
        }
        return self.shown(partitions, epochs=True)


def sorted_runs(lines: list[str]) -> list[str]:
    """Lines of the same kind in a row, sorted: members have no order, in descriptions and in records of one batch."""
    result: list[str] = []
    for kind, run in itertools.groupby(lines, key=kind_of):
        found = list(run)
        result += sorted(found) if kind in SORTED_KINDS else found
    return result


def kind_of(line: str) -> str:
    return line.split()[1] if line.startswith("log: ") else line[:2]


def encoded(message: Message) -> bytes:
    writer = Writer()
    writer.int16(EMBEDDED_VERSION)
    message.encode(writer, EMBEDDED_VERSION)
    return writer.to_bytes()


def show_subscription(value: ConsumerGroupMemberMetadataValue) -> str:
    named = {
        "regex": value.subscribed_topic_regex,
        "instance": value.instance_id,
        "assignor": value.server_assignor,
        "rack": value.rack_id,
        "classic": value.classic_member_metadata and value.classic_member_metadata.session_timeout_ms,
    }
    words = [f"topics={shown(value.subscribed_topic_names)}"]
    return " ".join(words + [f"{name}={what}" for name, what in named.items() if what])


def shown(names: Any) -> str:
    return ",".join(sorted(names)) or "-"
