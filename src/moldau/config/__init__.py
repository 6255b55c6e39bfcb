"""Every setting of brokers, topics, groups, quotas and client metrics: type, default, check, where it may change."""
