"""A metadata quorum alone: raft and its log, without nodes around them."""
