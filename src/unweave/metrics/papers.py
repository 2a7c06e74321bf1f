"""Where every metric comes from."""

PAPERS: dict[str, str] = {}
