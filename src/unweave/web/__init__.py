"""The explorer: an API over a store of runs, and the page that makes a latent space something to move through."""
