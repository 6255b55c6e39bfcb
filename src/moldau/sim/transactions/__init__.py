"""Transactions in a simulated cluster: applications that die between any two steps, readers, a ledger of it all."""
