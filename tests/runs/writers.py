"""What a process of its own writes: in a module that it can import however pytest was started."""

from unweave.runs.folder import RunFolder


def write_many(path: str, writer: int) -> None:
    """Thirty files of one's own, and three times a file that every writer writes."""
    for number in range(30):
        RunFolder(path).write_json(f"measures/{writer}-{number}.json", [writer, number])
        if number % 10 == 9:
            RunFolder(path).write_json("shared.json", [writer, number])
