"""What a job does while a part outside of it does not answer."""
