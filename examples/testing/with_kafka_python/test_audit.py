from audit import count_actions, write_audit


def test_entries_are_counted_by_user(kafka_bootstrap_servers, kafka_topic):
    write_audit(kafka_bootstrap_servers, kafka_topic, [("ada", "login"), ("bob", "login"), ("ada", "logout")])
    assert count_actions(kafka_bootstrap_servers, kafka_topic) == {"ada": 2, "bob": 1}


def test_an_entry_is_written_when_replicas_were_missing_for_a_moment(kafka_broker, kafka_topic):
    missing = kafka_broker.fail_next("Produce", "NOT_ENOUGH_REPLICAS", times=2)
    write_audit(kafka_broker.bootstrap_servers, kafka_topic, [("eve", "login")])
    missing.wait()
    assert [record.key for record in kafka_topic.records()] == [b"eve"]
