// node run_parts.cjs MODEL FOLDER: runs a model and its parts with ONNX Runtime on the same random
// inputs, and prints "same" where every output is the same, bit for bit.
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

const [model, folder] = process.argv.slice(2);
const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'manifest.json')));
// Without optimisation, since it may round otherwise in a part than in the whole.
const options = {graphOptimizationLevel: 'disabled', logSeverityLevel: 3};

let state = 12345;
function random() {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return state / 0x7fffffff;
}

function input({dtype, shape}) {
  const size = shape.reduce((product, dim) => product * dim, 1);
  if (dtype === 'float32') {
    return new ort.Tensor('float32', Float32Array.from({length: size}, () => random() - 0.5), shape);
  }
  if (dtype === 'int64') {
    return new ort.Tensor('int64', BigInt64Array.from({length: size}, () => BigInt(Math.floor(random() * 2))), shape);
  }
  throw new Error(`no inputs of ${dtype} here`);
}

function bytes(tensor) {
  return Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
}

async function main() {
  const values = Object.fromEntries(manifest.inputs.map((given) => [given.name, input(given)]));
  const whole = await (await ort.InferenceSession.create(model, options)).run({...values});
  for (const part of manifest.parts) {
    const session = await ort.InferenceSession.create(path.join(folder, part.file), options);
    const given = Object.fromEntries(part.inputs.map((name) => [name, values[name]]));
    Object.assign(values, await session.run(given));
  }
  for (const {name} of manifest.outputs) {
    if (!bytes(whole[name]).equals(bytes(values[name]))) throw new Error(`${name} differs`);
  }
  console.log(`same: ${manifest.outputs.length} outputs of ${manifest.parts.length} parts`);
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
