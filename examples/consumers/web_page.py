"""The digits model in a web page: digits are drawn in headless Chromium, and what the page shows is compared with JAX.

    JAXTF_TFJS_PYTHON=.../bin/python python web_page.py FOLDER

The network of examples/digits, converted as in tfjs_node.py, with the files of `web/` and TF.js in FOLDER/site, which a
web server needs to hold, nothing more. The page is used as people use it: digits drawn with a mouse, then with a finger
on a phone, the buttons by mouse and by keyboard. For each picture that the page made of a drawing, its scores are
compared with JAX's; nothing may come from elsewhere, and the console stays empty. Screenshots are in FOLDER.
"""

import functools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from compare import folder_size, made_folder
from jax.scipy.ndimage import map_coordinates
from models import EPSILON
from playwright.sync_api import BrowserContext, Page, sync_playwright

from jaxtf.convert import save_model

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "digits"))

from data import load  # noqa: E402
from network import Parameters, initial_parameters, predict  # noqa: E402
from train import epoch  # noqa: E402

EPOCHS = 40
REQUIRED_ACCURACY = 0.97

# Rounded operations on the longest path through the network: sums of 9, 144 and 512 products, a division, three biases
# (see models.py).
MAX_ERROR_IN_EPS = 9 + 144 + 512 + 1 + 3

Point = tuple[float, float]


# --- the site ---


def trained() -> Parameters:
    """The network's parameters, trained with images that are distorted again in each epoch: people draw differently."""
    training, held_out = load()
    parameters = initial_parameters(seed=0)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    state = (parameters, (jnp.zeros(()), zeros, zeros))
    for key in jax.random.split(jax.random.key(1), EPOCHS):
        distortion, order = jax.random.split(key)
        state, _ = epoch(state, distorted(training.images, distortion), training.labels, order)
    accuracy = float(np.mean(np.argmax(predict(state[0], held_out.images), axis=1) == held_out.labels))
    print(f"JAX reads {accuracy:.1%} of {len(held_out.labels)} held-out images", flush=True)
    if accuracy < REQUIRED_ACCURACY:
        sys.exit(f"web_page.py: {accuracy:.1%} is below the {REQUIRED_ACCURACY:.0%} that this network reaches")
    return state[0]


@jax.jit
def distorted(images: jax.Array, key: jax.Array) -> jax.Array:
    """Each image turned, sheared, stretched and moved a little, its own way."""
    of_matrix, of_shift = jax.random.split(key)
    matrices = jnp.eye(2) + 0.12 * jax.random.normal(of_matrix, (len(images), 2, 2))
    shifts = 0.4 * jax.random.normal(of_shift, (len(images), 2, 1, 1))
    middle = (images.shape[1] - 1) / 2
    places = jnp.stack(jnp.meshgrid(*2 * [jnp.arange(images.shape[1]) - middle], indexing="ij"))
    sources = jnp.einsum("nij,jyx->niyx", matrices, places) + middle + shifts
    return jax.vmap(lambda image, source: map_coordinates(image, list(source), order=1))(images, sources)


def scores(parameters: Parameters, images: jax.Array) -> dict[str, jax.Array]:
    return {"scores": predict(parameters, images)}


def made_site(root: Path, parameters: Parameters) -> Path:
    """FOLDER/site: the page, TF.js, the graph model, and an example of each digit."""
    site = root / "site"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(HERE / "web", site)
    shutil.copy(HERE / "tfjs" / "package.json", root)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], check=True, cwd=root)
    shutil.copy(root / "node_modules" / "@tensorflow" / "tfjs" / "dist" / "tf.es2017.min.js", site / "tf.min.js")
    save_model(
        scores,
        parameters,
        str(root / "saved_model"),
        input_signatures=[tf.TensorSpec([None, 8, 8], tf.float32, "images")],
        polymorphic_shapes=["(b, 8, 8)"],
        native_serialization=False,
        enable_xla=False,
    )
    convert = [os.environ["JAXTF_TFJS_PYTHON"], "-W", "ignore", str(HERE / "tfjs" / "convert.py")]
    subprocess.run([*convert, str(root / "saved_model"), str(site / "model")], check=True)
    _, held_out = load()
    first = [int(np.argmax(held_out.labels == digit)) for digit in (3, 8, 0, 5, 2, 9, 4, 7, 1, 6)]
    (site / "examples.json").write_text(json.dumps(held_out.images[first].astype(int).reshape(-1, 64).tolist()))
    return site


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a line for each."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder, served from a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


# --- digits as people draw them: strokes of points on a square, y downwards ---


def arc(x: float, y: float, width: float, height: float, *angles: float) -> list[Point]:
    """Points of an ellipse around (x, y), from one of two angles to the other, clockwise in degrees from the right."""
    between = np.radians(np.linspace(*angles, 24))
    return [(x + width * math.cos(angle), y + height * math.sin(angle)) for angle in between]


DRAWINGS = {
    0: [arc(0.5, 0.5, 0.22, 0.32, -90, 270)],
    1: [[(0.4, 0.32), (0.54, 0.18), (0.54, 0.82)]],
    2: [[*arc(0.5, 0.36, 0.19, 0.18, -170, 40), (0.33, 0.8), (0.72, 0.8)]],
    3: [arc(0.48, 0.34, 0.18, 0.16, -150, 90) + arc(0.48, 0.66, 0.2, 0.17, -90, 150)],
    4: [[(0.52, 0.18), (0.3, 0.58), (0.72, 0.58)], [(0.6, 0.38), (0.58, 0.84)]],
    5: [[(0.68, 0.2), (0.38, 0.2), (0.36, 0.46), *arc(0.48, 0.62, 0.2, 0.18, -120, 140)]],
    6: [[(0.62, 0.17), (0.52, 0.24), (0.42, 0.36), (0.34, 0.52), *arc(0.49, 0.66, 0.18, 0.17, 180, -180)]],
    7: [[(0.3, 0.2), (0.7, 0.2), (0.46, 0.82)], [(0.36, 0.52), (0.66, 0.52)]],
    8: [arc(0.5, 0.34, 0.15, 0.15, 90, -270) + arc(0.5, 0.66, 0.18, 0.17, -90, 270)],
    9: [[*arc(0.5, 0.37, 0.17, 0.18, 0, -360), (0.66, 0.4), (0.6, 0.82)]],
}
NEARLY_A_9 = [[(0.43, 0.22), (0.34, 0.52), (0.66, 0.54)], [(0.6, 0.2), (0.61, 0.84)]]  # a 4


# --- the page, as a person uses it ---


@dataclass
class Visit:
    """A page that is open, and whatever went wrong in it."""

    page: Page
    parameters: Parameters
    touch: bool
    faults: list[str] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    @classmethod
    def to(cls, address: str, context: BrowserContext, parameters: Parameters, *, touch: bool) -> "Visit":
        """Opens the page, and waits until the network is there."""
        page = context.new_page()
        visit = cls(page, parameters, touch)
        page.on("console", lambda message: visit.faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: visit.faults.append(f"error: {error}"))
        page.on("requestfailed", lambda request: visit.faults.append(f"failed: {request.url}"))
        page.on("request", lambda request: visit.elsewhere(address, request.url))
        page.on("response", lambda response: response.ok or visit.faults.append(f"{response.status}: {response.url}"))
        page.add_init_script("addEventListener('read', event => { window.lastRead = event.detail; }, true);")
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        return visit

    def elsewhere(self, address: str, url: str) -> None:
        if not url.startswith((address, "data:")):
            self.faults.append(f"from elsewhere: {url}")

    def draw(self, strokes: list[list[Point]]) -> None:
        """Draws on the paper, with the mouse or a finger; the events are the browser's own."""
        box = self.page.locator("#paper").bounding_box()
        assert box is not None
        for stroke in strokes:
            points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
            if self.touch:
                self.finger(points)
            else:
                self.page.mouse.move(*points[0])
                self.page.mouse.down()
                for point in points[1:]:
                    self.page.mouse.move(*point, steps=3)
                self.page.mouse.up()

    def finger(self, points: list[Point]) -> None:
        browser = self.page.context.new_cdp_session(self.page)
        for index, (x, y) in enumerate(points):
            kind = "touchMove" if index else "touchStart"
            browser.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        browser.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        browser.detach()

    def compared(self) -> int:
        """The digit that the page shows, after everything on it has been compared with JAX's reading of the picture."""
        page = self.page
        found = page.evaluate("window.lastRead")
        pixels = np.array(found["pixels"], np.float32).reshape(1, 8, 8)
        assert pixels.min() >= 0, pixels
        assert 12 <= pixels.max() <= 16, pixels
        assert pixels[0, [0, -1]].any(axis=1).all(), f"not as tall as the data: {pixels}"
        [expected] = np.asarray(jax.jit(predict)(self.parameters, pixels))
        error = float(np.abs(np.array(found["scores"], np.float32) - expected).max())
        tolerance = MAX_ERROR_IN_EPS * EPSILON * max(1.0, float(np.abs(expected).max()))
        assert error <= tolerance, f"scores differ from JAX's by {error:.1e} > {tolerance:.1e}"
        self.errors.append(error)
        winner = int(np.argmax(expected))
        shown = page.locator("#verdict strong").inner_text()
        marked = page.locator("#scores .winner span").first.inner_text()
        assert shown == marked == str(winner), f"the page says {shown} and marks {marked}; JAX reads {winner}"
        percents = [int(text.rstrip("\u202f%")) for text in page.locator("#scores .percent").all_inner_texts()]
        likely = 100 * np.asarray(jax.nn.softmax(expected))
        # Rounded to whole percents, of which each is half of one away at most.
        assert np.abs(percents - likely).max() <= 0.5 + 100 * 2 * tolerance, (percents, likely)
        return winner

    def milliseconds(self) -> float:
        """How long the page takes for a picture of what is drawn and its scores: median of 30, after three."""
        one = "() => { const start = performance.now(); scoresOf(picture(strokes)); return performance.now() - start; }"
        return statistics.median([self.page.evaluate(one) for _ in range(33)][3:])

    def screenshot(self, path: Path) -> None:
        """Takes a picture of the whole page, when its bars have come to rest."""
        if not self.touch:
            self.page.mouse.move(0, 0)
        self.page.wait_for_timeout(500)
        self.page.screenshot(path=path, full_page=True)

    def check(self) -> None:
        """That nothing went wrong, and that nothing is wider than the screen."""
        assert not self.faults, "\n".join(self.faults)
        wide, screen = self.page.evaluate("document.documentElement.scrollWidth"), self.page.viewport_size["width"]
        assert wide <= screen, f"the page is {wide} px wide on a screen of {screen}"


def draw_all(visit: Visit, digits: list[int]) -> None:
    """Draws digits, each on new paper; the page must read each as what it is, and say what JAX says."""
    for digit in digits:
        visit.page.locator("#clear").click()
        visit.draw(DRAWINGS[digit])
        found = visit.compared()
        assert found == digit, f"a {digit} is read as {found}"


def use_keyboard(visit: Visit) -> None:
    """The buttons, without a mouse: from one to the next with Tab, pressed with Enter."""
    page = visit.page
    page.locator("#clear").focus()
    page.keyboard.press("Enter")
    assert page.locator("#verdict").inner_text() == "Waiting for a digit."
    assert page.locator("#scores .winner").count() == 0
    page.locator("#example").focus()
    page.keyboard.press("Enter")
    assert visit.compared() == 3  # the first of the examples
    page.keyboard.press("Enter")
    assert visit.compared() == 8
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "clear"


def main(folder: str) -> None:
    chromium = shutil.which("chromium") or sys.exit("web_page.py: there is no chromium; apt-get install chromium")
    root = made_folder(folder).resolve()
    parameters = trained()
    site = made_site(root, parameters)
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        desk = browser.new_context(viewport={"width": 880, "height": 600}, color_scheme="light")
        visit = Visit.to(address, desk, parameters, touch=False)
        assert visit.page.locator("#hint").is_visible()
        draw_all(visit, list(DRAWINGS))
        assert not visit.page.locator("#hint").is_visible()
        visit.page.locator("#clear").click()
        visit.draw(NEARLY_A_9)
        visit.compared()
        milliseconds = visit.milliseconds()
        visit.screenshot(root / "desk.png")
        use_keyboard(visit)
        visit.check()
        phone = browser.new_context(
            viewport={"width": 390, "height": 844},
            device_scale_factor=2,
            color_scheme="dark",
            has_touch=True,
            is_mobile=True,
        )
        touched = Visit.to(address, phone, parameters, touch=True)
        draw_all(touched, [2, 5, 7, 4])
        touched.screenshot(root / "phone.png")
        touched.check()
        browser.close()
    errors = visit.errors + touched.errors
    sizes = f"{folder_size(site / 'model')} bytes of {folder_size(site)}"
    print(f"web page: {sizes}  {milliseconds:.3f} ms  error {max(errors):.1e}  {len(errors)} pictures")
    print(f"to draw yourself: python3 -m http.server --bind 127.0.0.1 --directory {site}")


if __name__ == "__main__":
    main(sys.argv[1])
