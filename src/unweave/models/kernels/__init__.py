"""GPU kernels for stacks of models. Nothing here is imported before a GPU asks for it; PyTorch alone must suffice."""
