"""From a run or a table of codes to scores and descriptions."""
