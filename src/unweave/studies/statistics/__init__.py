"""The statistics of studies: functions of arrays and tables, one a file, deterministic under a seed."""
