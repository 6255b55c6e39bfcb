"""Who a client is and what it may do: logins and rights as plain data and state machines, without sockets or clocks."""
