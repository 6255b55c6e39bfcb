"""What clients know of topics and logs from what they sent and were told; a checker for each sentence."""
