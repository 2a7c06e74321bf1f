"""The Hugging Face hub: folders fetched from it and sent to it, and its refusals in a sentence each."""

import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LOG_IN = "log in with: hf auth login, or set HF_TOKEN"


def fetch(name: str, patterns: Sequence[str], target: Path | None = None, *, again: bool = False) -> Path:
    """Files of ``owner/model`` in a folder, else in the library's own cache; ``again``: also those it has."""
    hub = _library()
    where = {} if target is None else {"local_dir": str(target)}
    with _in_words(hub, name):
        found = hub.snapshot_download(name, allow_patterns=list(patterns), force_download=again, **where)
    return Path(found)


def send(folder: Path, name: str) -> str:
    """Put a folder on the hub as ``owner/model``, which is made where there is none; its address is returned."""
    hub = _library()
    with _in_words(hub, name):
        address = hub.HfApi().create_repo(name, exist_ok=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*about to commit a data file")  # the history of a run is one
            hub.HfApi().upload_folder(repo_id=name, folder_path=str(folder))
    return str(address)


def _library() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.utils
    except ImportError as error:
        raise ModuleNotFoundError("the hub needs one more package: pip install 'unweave[hub]'") from error
    if not sys.stderr.isatty():
        huggingface_hub.utils.disable_progress_bars()
    return huggingface_hub


@contextlib.contextmanager
def _in_words(hub: Any, name: str) -> Iterator[None]:
    """What the library raises, as one sentence."""
    try:
        yield
    except Exception as error:
        cause = error.__cause__ if type(error) is RuntimeError and error.__cause__ else error  # an upload's, wrapped
        raise _refusal(hub, name, cause) from error


def _refusal(hub: Any, name: str, error: BaseException) -> Exception:
    kinds, place = hub.utils, hub.constants.ENDPOINT
    if isinstance(error, kinds.HFValidationError):
        return ValueError(f"{name!r} is no name of a model on the hub; one reads owner/model")
    if isinstance(error, kinds.GatedRepoError):
        return PermissionError(
            f"{name} is open to those whom its owner admits; ask for it at {place}/{name} and {LOG_IN}"
        )
    if isinstance(error, kinds.RepositoryNotFoundError):
        return FileNotFoundError(f"the hub at {place} has no {name} that you may see; check the name, or {LOG_IN}")
    if isinstance(error, kinds.HfHubHTTPError) and error.response is not None:
        return _answered(name, place, error.response.status_code)
    if isinstance(error, kinds.LocalEntryNotFoundError) or type(error).__module__.startswith(("httpx", "requests")):
        return ConnectionError(f"the hub at {place} cannot be reached; check the network, or HF_ENDPOINT")
    return error if isinstance(error, Exception) else RuntimeError(str(error))


def _answered(name: str, place: str, status: int) -> Exception:
    if status == 401:
        return PermissionError(
            f"the hub at {place} opens {name} to nobody it does not know; check the name, or {LOG_IN}"
        )
    if status == 403:
        return PermissionError(
            f"you may not write {name} on the hub at {place}; choose a name of your own, or {LOG_IN}"
        )
    return ConnectionError(f"the hub at {place} refused {name} with status {status}; try again later")
