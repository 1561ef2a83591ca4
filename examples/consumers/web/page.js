// Draw a digit, see what the network reads: strokes to an 8x8 picture like those it has learned from, picture to scores.
"use strict";

const paper = document.querySelector("#paper");
const seen = document.querySelector("#seen");
const verdict = document.querySelector("#verdict");

let network; // a graph model: images float32[b, 8, 8] -> scores float32[b, 10], the logits
let examples = []; // pictures from the data, 64 numbers each
let strokes = []; // lists of points [x, y], in parts of the paper's width
let example = null; // the picture that lies on the paper instead of strokes
let shown = 0; // how many examples have been shown

// --- from strokes to what the network knows ---

// The data were made from bitmaps of 32x32, each number being how many of 4x4 pixels have ink. The digits are as tall
// as the bitmap, at most three quarters as wide, in the middle; three tenths of it are ink, whatever the pen was.
const SIDE = 32;
const BLOCK = 4;
const WIDEST = 24;
const INK = 0.305 * SIDE * SIDE;
const THINNEST = 4;
const THICKEST = 7;

/** The picture of some strokes: 64 numbers from 0 to 16, by rows. */
function picture(strokes) {
  const points = strokes.flat();
  const [left, right] = extremes(points.map(([x]) => x));
  const [top, bottom] = extremes(points.map(([, y]) => y));
  let width = THINNEST;
  let moved;
  for (let round = 0; round < 3; round++) {
    // A wider line leaves less space for its middle, which makes it shorter, and so wider.
    const down = (SIDE - width) / Math.max(bottom - top, 0.1);
    const across = Math.min(down, (WIDEST - width) / Math.max(right - left, 1e-6));
    moved = strokes.map((stroke) =>
      stroke.map(([x, y]) => [
        SIDE / 2 + across * (x - (left + right) / 2),
        SIDE / 2 + down * (y - (top + bottom) / 2),
      ]),
    );
    const length = moved.flatMap(segments).reduce((sum, [from, to]) => sum + distance(from, to), 0);
    width = Math.min(Math.max(INK / (length + width), THINNEST), THICKEST);
  }
  const lines = moved.flatMap(segments);
  const counts = new Array((SIDE / BLOCK) ** 2).fill(0);
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      if (lines.some(([from, to]) => toSegment([x + 0.5, y + 0.5], from, to) <= width / 2)) {
        counts[Math.floor(y / BLOCK) * (SIDE / BLOCK) + Math.floor(x / BLOCK)] += 1;
      }
    }
  }
  return counts;
}

const extremes = (numbers) => [Math.min(...numbers), Math.max(...numbers)];
const distance = ([x1, y1], [x2, y2]) => Math.hypot(x2 - x1, y2 - y1);
const segments = (stroke) =>
  stroke.length === 1 ? [[stroke[0], stroke[0]]] : stroke.slice(1).map((to, index) => [stroke[index], to]);

/** The distance of a point from the segment between two others. */
function toSegment([x, y], [x1, y1], [x2, y2]) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const squared = dx * dx + dy * dy;
  const part = squared ? Math.min(Math.max(((x - x1) * dx + (y - y1) * dy) / squared, 0), 1) : 0;
  return Math.hypot(x - x1 - part * dx, y - y1 - part * dy);
}

// --- reading ---

/** The network's ten scores of a picture. */
function scoresOf(pixels) {
  return tf.tidy(() => Array.from(network.execute({ images: tf.tensor(pixels, [1, 8, 8], "float32") }).dataSync()));
}

/** Probabilities: softmax of the scores. */
function probabilities(scores) {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest));
  const sum = powers.reduce((left, right) => left + right);
  return powers.map((power) => power / sum);
}

/** Reads what is on the paper and shows it; says it, too, when a stroke has ended. */
function read(ended) {
  document.querySelector("#hint").hidden = strokes.length > 0 || example !== null;
  if (!network) return;
  if (strokes.length === 0 && example === null) {
    show(null, null, ended);
    return;
  }
  const pixels = example ?? picture(strokes);
  const scores = scoresOf(pixels);
  show(pixels, probabilities(scores), ended);
  if (ended) document.dispatchEvent(new CustomEvent("read", { detail: { pixels, scores } })); // for tests
}

/** Shows the picture and the probabilities; null for an empty paper. */
function show(pixels, likely, ended) {
  drawPicture(seen.getContext("2d"), pixels ?? new Array(64).fill(0), inkOf(seen));
  const winner = likely ? likely.indexOf(Math.max(...likely)) : null;
  for (const [digit, row] of document.querySelectorAll("#scores li").entries()) {
    const percent = likely ? 100 * likely[digit] : 0;
    row.classList.toggle("winner", digit === winner);
    row.querySelector(".bar span").style.width = `${percent}%`;
    row.querySelector(".percent").textContent = likely ? `${Math.round(percent)}\u202f%` : "";
  }
  if (!ended) return;
  if (winner === null) {
    verdict.textContent = "Waiting for a digit.";
    return;
  }
  const sure = likely[winner];
  const digit = document.createElement("strong");
  digit.textContent = winner;
  const certainty = sure > 0.9 ? "That is" : sure > 0.5 ? "Probably" : "Perhaps";
  verdict.replaceChildren(`${certainty} ${winner === 8 ? "an" : "a"} `, digit);
}

// --- drawing ---

const inkOf = (canvas) => getComputedStyle(canvas).color;

/** Draws an 8x8 picture, filling the canvas. */
function drawPicture(context, pixels, ink) {
  const { width, height } = context.canvas;
  context.clearRect(0, 0, width, height);
  context.fillStyle = ink;
  for (const [index, count] of pixels.entries()) {
    context.globalAlpha = count / 16;
    context.fillRect(((index % 8) * width) / 8, (Math.floor(index / 8) * height) / 8, width / 8, height / 8);
  }
  context.globalAlpha = 1;
}

/** Draws what is on the paper. */
function drawPaper() {
  const context = paper.getContext("2d");
  const side = Math.round(paper.clientWidth * devicePixelRatio);
  if (paper.width !== side) paper.width = paper.height = side;
  context.clearRect(0, 0, side, side);
  if (example) {
    drawPicture(context, example, inkOf(paper));
    return;
  }
  context.strokeStyle = inkOf(paper);
  context.lineWidth = 0.07 * side;
  context.lineCap = context.lineJoin = "round";
  for (const stroke of strokes) {
    context.beginPath();
    context.moveTo(side * stroke[0][0], side * stroke[0][1]);
    for (const [x, y] of stroke) context.lineTo(side * x, side * y);
    context.stroke();
  }
}

let waiting = false; // for the next frame

/** Draws and reads once, before the next frame, however many points there are until then. */
function update() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawPaper();
    read(false);
  });
}

/** Draws, reads and says it at once. */
function finish() {
  drawPaper();
  read(true);
}

/** Where a pointer is, in parts of the paper's width. */
function pointOf(event) {
  const { left, top, width } = paper.getBoundingClientRect();
  return [(event.clientX - left) / width, (event.clientY - top) / width];
}

let pointer = null; // the one that draws

paper.addEventListener("pointerdown", (event) => {
  if (pointer !== null || event.button !== 0) return;
  event.preventDefault();
  pointer = event.pointerId;
  paper.setPointerCapture(pointer);
  if (example) clear();
  strokes.push([pointOf(event)]);
  update();
});

paper.addEventListener("pointermove", (event) => {
  if (event.pointerId !== pointer) return;
  const stroke = strokes.at(-1);
  const all = event.getCoalescedEvents?.() ?? [];
  for (const one of all.length ? all : [event]) {
    const point = pointOf(one);
    if (distance(point, stroke.at(-1)) > 0.01) stroke.push(point);
  }
  update();
});

for (const kind of ["pointerup", "pointercancel"]) {
  paper.addEventListener(kind, (event) => {
    if (event.pointerId !== pointer) return;
    pointer = null;
    finish();
  });
}

// --- buttons ---

function clear() {
  strokes = [];
  example = null;
}

document.querySelector("#clear").addEventListener("click", () => {
  clear();
  finish();
});

document.querySelector("#example").addEventListener("click", () => {
  clear();
  example = examples[shown++ % examples.length];
  finish();
});

// --- the beginning ---

for (let digit = 0; digit < 10; digit++) {
  const row = document.createElement("li");
  row.innerHTML = `<span>${digit}</span><span class="bar"><span style="width: 0"></span></span><span class="percent"></span>`;
  document.querySelector("#scores").append(row);
}

new ResizeObserver(drawPaper).observe(paper);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  drawPaper();
  read(false);
});
document.querySelector("#example").disabled = true; // until there are some

async function load() {
  await tf.setBackend("cpu"); // so small a network is read before a graphics card has been asked
  [network, examples] = await Promise.all([
    tf.loadGraphModel("model/model.json"),
    fetch("examples.json").then((response) => response.json()),
  ]);
  scoresOf(new Array(64).fill(0)); // the first call prepares what later ones use
  document.querySelector("#example").disabled = false;
  finish();
  document.body.dataset.ready = "yes"; // for tests
}

load().catch((error) => {
  verdict.textContent = `The network could not be loaded: ${error.message}`;
  console.error(error);
});
