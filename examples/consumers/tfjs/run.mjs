// Runs TF.js graph models from disk: node run.mjs BACKEND JOBS.json RESULTS.json, for the backends cpu and wasm.
// JOBS is a list of {folder, calls: [{input name: {shape, dtype, data}}]}; for each, RESULTS has either
// {results: [{output name: {shape, dtype, data}}], milliseconds: median of a call with the last inputs} or {error}.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [backend, jobsFile, resultsFile] = process.argv.slice(2);
const require = createRequire(path.resolve(resultsFile)); // node_modules is next to the results, not next to this program
const tf = require("@tensorflow/tfjs");
if (backend === "wasm") require("@tensorflow/tfjs-backend-wasm");
await tf.setBackend(backend);
await tf.ready();
console.warn = () => {}; // that a model without loops could be called without `await`
if (tf.getBackend() !== backend) throw new Error(`no backend ${backend}`);

// What `tf.loadGraphModel` takes in place of an address: the files of a folder, read.
function fromFolder(folder) {
  const read = (name) => fs.readFileSync(path.join(folder, name));
  const { modelTopology, weightsManifest, signature } = JSON.parse(read("model.json"));
  const weights = Buffer.concat(weightsManifest.flatMap((group) => group.paths.map(read)));
  const weightData = weights.buffer.slice(weights.byteOffset, weights.byteOffset + weights.byteLength);
  const weightSpecs = weightsManifest.flatMap((group) => group.weights);
  return { load: async () => ({ modelTopology, weightSpecs, weightData, signature }) };
}

async function call(model, inputs) {
  const tensors = Object.fromEntries(
    Object.entries(inputs).map(([name, { shape, dtype, data }]) => [name, tf.tensor(data, shape, dtype)]),
  );
  const names = Object.keys(model.modelSignature.outputs);
  const found = [await model.executeAsync(tensors, names)].flat(); // a single result comes without an array
  const outputs = {};
  for (const [index, name] of names.entries()) {
    const { shape, dtype } = found[index];
    outputs[name] = { shape, dtype, data: Array.from(await found[index].data()) };
  }
  tf.dispose([tensors, found]);
  return outputs;
}

const results = [];
for (const { folder, calls } of JSON.parse(fs.readFileSync(jobsFile))) {
  try {
    const model = await tf.loadGraphModel(fromFolder(folder));
    const found = [];
    for (const inputs of calls) found.push(await call(model, inputs));
    const times = [];
    for (let count = 0; count < 33; count++) {
      const start = performance.now();
      await call(model, calls.at(-1));
      if (count >= 3) times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    results.push({ results: found, milliseconds: times[times.length >> 1] });
  } catch (error) {
    results.push({ error: String(error) });
  }
}
fs.writeFileSync(resultsFile, JSON.stringify(results));
