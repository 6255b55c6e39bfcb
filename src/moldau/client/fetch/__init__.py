"""What a consumer reads: its positions, fetches on their way, records in order."""
