"""unittest instead of pytest: `python -m unittest` runs it."""

import unittest

from moldau.client import Producer
from moldau.testing import KafkaTestMixin


class TestCounter(KafkaTestMixin, unittest.TestCase):
    def test_records_arrive_in_order(self) -> None:
        topic = self.new_topic()
        with Producer(self.bootstrap_servers) as producer:
            producer.send_many(topic, ["1", "2", "3"])
        self.assertEqual([record.value for record in topic.records()], [b"1", b"2", b"3"])

    def test_a_refused_record_is_sent_again(self) -> None:
        topic = self.new_topic()
        refused = self.broker.fail_next("Produce", "REQUEST_TIMED_OUT")
        with Producer(self.bootstrap_servers) as producer:
            producer.send(topic, "1").result(30_000)
        self.assertEqual(refused.hits, 1)
        self.assertEqual(len(topic.records()), 1)


if __name__ == "__main__":
    unittest.main()
