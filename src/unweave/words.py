"""Words for numbers of things."""


def number_of(n: int, one: str, many: str = "") -> str:
    """The words "1 model", "2,048 models"; ``many`` where an s is not enough."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
