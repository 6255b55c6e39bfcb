"""What a node and its process count, under the names that exporters give to Apache Kafka's metrics; and the page."""
