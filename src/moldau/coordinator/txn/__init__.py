"""The transaction coordinator: one machine for each partition of __transaction_state."""
