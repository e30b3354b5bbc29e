"""Whether an output means what it says: its probabilities against what came true, and what hashing gave it."""
