"""What clients measure of themselves, under the names of Kafka's metrics."""
