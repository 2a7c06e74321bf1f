"""The explorer under many hands: clients that move sliders without a pause, the delay of one hand, a table of 20,000.

    python benchmarks/explorer.py                        # 50 clients for a minute on the published conv model
    python benchmarks/explorer.py --clients 10 --seconds 10
    python benchmarks/explorer.py --table 20000          # the table of runs: reading, packing, looking again
    python benchmarks/explorer.py --table 20000 --browser      # the same table in chromium: first paint, filter, scroll

Every client asks for the picture of a new code as soon as the last has come, as a hand on a slider does; server and
clients are processes of their own on the same machine, so the clients' work counts against us. The model is the conv
network of the published study at 64×64, untrained: decoding costs the same.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

LATENTS, PORT = 10, 8791


def main() -> None:
    """Measure and print one line of JSON a measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--table", type=int, metavar="N", help="measure a table of N runs instead")
    parser.add_argument("--browser", action="store_true", help="look at the table in chromium")
    parser.add_argument("--hand", type=float, metavar="MS", default=0.0, help="pause of a hand between two moves (0)")
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client is not None:
        asyncio.run(hands(given.client, given.seconds, given.hand))
    elif given.table:
        (painted if given.browser else table)(given.table)
    else:
        sliders(given.clients, given.seconds, given.hand)


def sliders(clients: int, seconds: float, hand: float) -> None:
    """One hand alone, then many at once."""
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "runs"
        words = f"train dsprites --steps 1 --plan.threads 1 --quiet --folder {store / 'conv'}"
        subprocess.run([sys.executable, "-m", "unweave", *words.split()], check=True, stdout=subprocess.DEVNULL)
        server = serve(store)
        try:
            for n, how_long in ((1, min(10.0, seconds)), (clients, seconds)):
                began = cpu_of(server.pid)
                told = run_clients(n, how_long, hand)
                used = (cpu_of(server.pid) - began) / how_long
                print(json.dumps(told | {"clients": n, "seconds": how_long, "server_cores": round(used, 2), **load()}))
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=20)


def serve(store: Path) -> "subprocess.Popen[bytes]":
    words = ["explore", str(store), "--no-browser", "--port", str(PORT)]
    server = subprocess.Popen([sys.executable, "-m", "unweave", *words], stdout=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api/store", timeout=2).read()
            return server
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the explorer did not start")


def run_clients(n: int, seconds: float, hand: float) -> dict[str, Any]:
    """All hands in one further process; its own loop must not be what is slow."""
    words = [__file__, "--client", str(n), "--seconds", str(seconds), "--hand", str(hand)]
    told = subprocess.run([sys.executable, *words], check=True, capture_output=True)
    found: dict[str, Any] = json.loads(told.stdout)
    return found


async def hands(n: int, seconds: float, pause: float) -> None:
    """Keep-alive connections in plain asyncio, one a client; prints what they saw."""
    delays: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + seconds
    await asyncio.gather(*(one_hand(place, end, pause / 1000, delays, errors) for place in range(n)))
    delays.sort()
    share = {f"p{q}_ms": round(1000 * delays[min(len(delays) - 1, len(delays) * q // 100)], 1) for q in (50, 95, 99)}
    print(json.dumps({"requests": len(delays), "errors": len(errors), "first_error": errors[:1]} | share))


async def one_hand(seed: int, end: float, pause: float, delays: list[float], errors: list[str]) -> None:
    draw = random.Random(seed)
    code = [draw.gauss(0, 1) for _ in range(LATENTS)]
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    while time.monotonic() < end:
        code[draw.randrange(LATENTS)] = draw.uniform(-3, 3)
        began = time.perf_counter()
        status, content = await ask(reader, writer, json.dumps({"codes": [code]}).encode())
        delays.append(time.perf_counter() - began)
        if status != 200 or len(content) != 64 * 64:
            errors.append(f"{status}: {content[:80]!r}")
        await asyncio.sleep(pause)
    writer.close()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> tuple[int, bytes]:
    head = f"POST /api/runs/conv/decode HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(answer.split("content-length: ")[1].split("\r\n")[0])
    return int(answer.split()[1]), await reader.readexactly(length)


def table(n: int) -> None:
    """Read, pack and look again at a store of many runs; CPU seconds, for a machine with other work."""
    from unweave.web.catalogue import Catalogue
    from unweave.web.columns import to_json
    from unweave.web.store import ReadOnlyStore

    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        synthetic(root, n)
        for start in ("cold", "warm"):
            catalogue = Catalogue(ReadOnlyStore(root))
            read, again = clocked(catalogue.refresh), clocked(catalogue.refresh)
            content = to_json(catalogue.since(0))
            pack = clocked(lambda: to_json(catalogue.since(0)))  # noqa: B023
            told = {"start": start, "runs": n, "read_s": read, "look_again_s": again, "pack_s": pack}
            print(json.dumps(told | {"megabytes": round(len(content) / 1e6, 2)} | load()))
            if start == "cold":
                from unweave.studies.store import Store

                Store(root).table()


def painted(n: int) -> None:
    """What a visitor sees: the first paint, the first rows, a filter, a scroll; cold, and once the table is read."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-background-networking", "--no-first-run"]
    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        synthetic(Path(place), n)
        server = serve(Path(place))
        try:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
            print(json.dumps({"table": "being read"} | look(browser)))
            time.sleep(15)
            print(json.dumps({"table": "read"} | look(browser) | load()))
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=20)


def look(browser: Any) -> dict[str, Any]:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    began = time.perf_counter()
    page.goto(f"http://127.0.0.1:{PORT}/")
    page.wait_for_selector(".body .row")
    rows = time.perf_counter() - began
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    filtered = page.evaluate(
        """() => { const box = document.querySelector('#filter'), began = performance.now(); box.value = 'seed=0';
        box.dispatchEvent(new Event('input')); return performance.now() - began; }"""
    )
    frames = page.evaluate(
        """async () => { const all = document.querySelector('.runs-scroll'), times = []; let last = performance.now();
        for (let i = 0; i < 60; i++) { all.scrollTop += 900; await new Promise(requestAnimationFrame);
        times.push(performance.now() - last); last = performance.now(); } return times.sort((a, b) => a - b); }"""
    )
    told = {"first_paint_ms": paint, "first_rows_ms": 1000 * rows, "filter_ms": filtered, "frame_ms": frames[30]}
    page.context.close()
    return {name: round(value, 1) for name, value in told.items()}


def synthetic(root: Path, n: int) -> None:
    """Folders like those of a finished study, without weights that anyone could load."""
    from unweave.recipes.demo import experiment
    from unweave.runs.folder import RunFolder
    from unweave.training.experiment import experiment_to

    first = RunFolder(root / "first")
    config = experiment_to(experiment())
    first.write_json("config.json", config)
    metrics = ("mig", "dci", "sap_score", "factor_vae_score", "modularity")
    draw = random.Random(0)
    scores = {name: {"value": draw.random(), "higher_is_better": True} for name in metrics}
    first.write_json("scores.json", {"mean": {"scores": scores}, "latents": {"types": ["active", "passive"]}})
    first.write("model.safetensors", b"none")
    for place in range(1, n):
        shutil.copytree(root / "first", root / f"micro-beta_vae-{place:012x}")


def clocked(call: Any) -> float:
    began = time.process_time()
    call()
    return round(time.process_time() - began, 3)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load() -> dict[str, Any]:
    return {"cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[0], 1)}


if __name__ == "__main__":
    main()
