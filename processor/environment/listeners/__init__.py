"""What each HTTP listener of statestore shares: its sockets with their limits, and the Host of a request."""
