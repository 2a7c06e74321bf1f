"""Studies: many runs, planned, trained, measured and reported; killed anywhere, nothing is lost or done twice."""
