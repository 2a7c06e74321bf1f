"""Questions of our own: what is claimed of methods in general, tested where the answer is known."""
