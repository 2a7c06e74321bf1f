"""What a representation is worth to a learner."""
