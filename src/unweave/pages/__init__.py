"""Self-contained pages and the folders they are written to: of a run, a diagnosis, a comparison, a search, a study."""
