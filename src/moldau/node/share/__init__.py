"""Share groups on a broker (KIP-932): records in flight, locks and sessions; share coordinators, and who asks them."""
