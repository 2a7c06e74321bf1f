"""Information and structure of samples, estimated from their kernel matrices."""
