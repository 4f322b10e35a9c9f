"""What an operator sets: settings, the security of Kafka, and secrets by reference."""
