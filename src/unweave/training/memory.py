"""Keep memory that was freed: a step frees and takes the same few hundred megabytes again and again."""

import ctypes

TRIM, MMAP = -1, -3
"""glibc's names for what is given back to the system, and for what is taken from it piece by piece."""
LARGEST = 2**31 - 1
LARGE = 2**30


def keep_freed_memory() -> bool:
    """For processes that only train: the C library holds on to what a step frees, and the next one finds it.

    glibc otherwise gives large pieces back to the system, which hands them out anew filled with zeros; on a CPU that
    is a fifth of a convolutional step. Other C libraries are left alone. Returns whether it was done.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(MMAP, LARGE)) and bool(mallopt(TRIM, LARGEST))
