"""What every simulated world stands on: events and their clock, machines with their disks, links, the trace."""
