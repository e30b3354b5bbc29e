"""What would make an output better at once: parameters tuned, and outputs mixed, on lines whose answers are known."""
