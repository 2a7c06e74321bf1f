"""Many models trained as one stack, each the model it would be alone."""
