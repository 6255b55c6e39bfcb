"""What the container image runs, by the contracts that tools know from apache/kafka and confluentinc/cp-kafka."""
