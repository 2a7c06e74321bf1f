"""Complete experiments as functions."""
