"""From an experiment to a finished run folder."""
