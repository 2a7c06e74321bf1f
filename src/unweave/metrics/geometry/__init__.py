"""The geometry of decoders: how orthogonal the directions are in which latents move an image."""
