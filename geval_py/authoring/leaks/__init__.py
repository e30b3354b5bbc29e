"""What a challenge gives away: answers in public, and what one part shows of another."""
