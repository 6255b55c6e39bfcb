"""What a data directory holds, for people who look into it: its files described, its partitions checked."""
