"""What a producer sends: batches, their fate, the thread that sends them, transactions."""
