"""Looks at the built site as a reader does, in headless Chromium, on a desk and on a phone.

    python tools/check_site.py site SCREENSHOTS

Every page: nothing in the console, no request that fails or goes elsewhere, every link and anchor inside the site is
there, nothing wider than the screen at 390 pixels (what is wide scrolls within itself), and no code cut off at 1280
pixels. The search finds a word of the errors page and leads there. Screenshots of all pages, at both widths, are
written for people to look at.

Needs playwright and a Chromium, by default /usr/bin/chromium, or `JAXTF_CHROMIUM`. Exit status 1, with one line per
fault.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

CHROMIUM = os.environ.get("JAXTF_CHROMIUM", "/usr/bin/chromium")
SCREENS = {"desk": (1280, 900), "phone": (390, 844)}
SEARCHED, FOUND_ON = "InconclusiveDimension", "errors/"  # a word, and a page that the search must offer for it

# Elements that stick out of the screen to the right, the innermost ones, except within something that scrolls.
STICKING_OUT = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = e => {
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX)) return true;
    }
    return false;
  };
  const visible = e => e.checkVisibility() && getComputedStyle(e).position !== 'fixed';
  const out = [...document.querySelectorAll('.md-main *')].filter(
    e => visible(e) && e.getBoundingClientRect().right > width + 1 && !scrolls(e));
  const inner = out.filter(e => ![...e.children].some(c => out.includes(c)));
  const whole = document.documentElement.scrollWidth;
  const wide = whole > width ? [`the page is ${whole} px wide`] : [];
  return wide.concat(inner.slice(0, 3).map(
    e => `<${e.tagName.toLowerCase()}> ${e.textContent.trim().slice(0, 50)}`));
}"""

# Lines of code that a reader would have to scroll for; what is folded away is not measured.
CUT_OFF = """() => [...document.querySelectorAll('.md-content pre > code')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .map(e => 'code is cut off: ' + e.textContent.split('\\n').sort((a, b) => b.length - a.length)[0].slice(0, 60))"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        """Drops the line."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a server of the folder, for as long as the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def watched(page: Page, address: str, faults: list[str]) -> None:
    """Adds what goes wrong in the page to the faults: its console, its errors, its requests."""

    def here() -> str:
        return page.url.removeprefix(address) or "index"

    page.on("console", lambda m: faults.append(f"{here()}: console: {m.text}") if m.type != "info" else None)
    page.on("pageerror", lambda error: faults.append(f"{here()}: error: {error}"))
    page.on("requestfailed", lambda r: faults.append(f"{here()}: {r.url} was not loaded: {r.failure}"))
    page.on("response", lambda r: faults.append(f"{here()}: {r.url}: status {r.status}") if r.status >= 400 else None)
    page.on(
        "request",
        lambda r: (
            None if r.url.startswith((address, "data:", "blob:")) else faults.append(f"{here()}: asks for {r.url}")
        ),
    )


def check_page(page: Page, url: str, faults: list[str]) -> tuple[set[str], set[str]]:
    """Opens a page: its links as (page#anchor) addresses, and its anchors."""
    page.goto(url, wait_until="networkidle")  # or opening the next page cancels what is still loading
    links = page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
    anchors = page.eval_on_selector_all("[id], a[name]", "all => all.map(a => a.id || a.name)")
    return {link for link in links if link.startswith(("http:", "https:"))}, {f"{url}#{anchor}" for anchor in anchors}


def check_search(browser: Browser, address: str, faults: list[str]) -> None:
    """Types a word into the search and follows what it offers."""
    page = browser.new_page()
    watched(page, address, faults)
    page.goto(address, wait_until="load")
    field = page.locator("input.md-search__input")
    field.click()
    field.press_sequentially(SEARCHED, delay=20)
    results = page.locator("a.md-search-result__link")
    try:
        results.first.wait_for(timeout=20_000)
        offered = results.evaluate_all("all => all.map(a => a.href)")
        if not any(link.startswith(address + FOUND_ON) for link in offered):
            faults.append(f"search: {SEARCHED!r} does not offer {FOUND_ON}: {offered}")
    except TimeoutError:
        faults.append(f"search: nothing is found for {SEARCHED!r}")
    page.close()


def main(site: Path, screenshots: Path) -> int:
    """Checks every page; the exit status."""
    paths = sorted(str(path.parent.relative_to(site)) for path in site.rglob("index.html"))
    faults: list[str] = []
    links: dict[str, set[str]] = {}
    anchors: set[str] = set()
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        urls = [address if path == "." else f"{address}{path}/" for path in paths]
        for screen, (width, height) in SCREENS.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            watched(page, address, faults)
            (screenshots / screen).mkdir(parents=True, exist_ok=True)
            for url in urls:
                found, here = check_page(page, url, faults)
                links[url], anchors = found, anchors | here | {url}
                wide = page.evaluate(STICKING_OUT) + (page.evaluate(CUT_OFF) if screen == "desk" else [])
                faults += [f"{url.removeprefix(address)} at {width} px: {what}" for what in wide]
                name = url.removeprefix(address).strip("/").replace("/", "-") or "index"
                page.screenshot(path=screenshots / screen / f"{name}.png", full_page=False)
            page.close()
        check_search(browser, address, faults)
        browser.close()
        inside = {(url, link) for url, found in links.items() for link in found if link.startswith(address)}
        for url, link in sorted(inside):
            plain, anchor = urldefrag(link)
            known = (
                f"{plain}#{unquote(anchor)}" in anchors if anchor else plain in anchors or is_file(site, plain, address)
            )
            if not known:
                faults.append(f"{url.removeprefix(address) or 'index'}: there is no {link.removeprefix(address)}")
    print("\n".join(dict.fromkeys(faults)) or f"{len(paths)} pages, {len(inside)} links inside the site: no fault")
    return 1 if faults else 0


def is_file(site: Path, url: str, address: str) -> bool:
    """Whether an address is that of a file of the site."""
    return (site / unquote(url.removeprefix(address))).is_file()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
