"""What is counted on the way of a request: plain numbers, kept where the work is done and read by who serves them."""
