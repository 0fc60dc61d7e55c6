// What the live pages compute with. A vector is a Float32Array; a matrix is one too, row after row.

// e^(score / temperature) over their sum; where mask is false the weight is 0
export function softmax(scores, mask, temperature = 1) {
  let peak = -Infinity;
  for (let j = 0; j < scores.length; j++)
    if (!mask || mask[j]) peak = Math.max(peak, scores[j] / temperature);
  const weights = new Float32Array(scores.length);
  let total = 0;
  for (let j = 0; j < scores.length; j++)
    if (!mask || mask[j]) total += weights[j] = Math.exp(scores[j] / temperature - peak);
  if (total) for (let j = 0; j < weights.length; j++) weights[j] /= total;
  return weights;
}

// log(sum e^score), finite where the scores are: -log p of a token is this less its score
export function logSumExp(scores) {
  const peak = scores.reduce((most, score) => Math.max(most, score));
  return peak + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - peak), 0));
}

// y = W x + b, where W has a row for each number of y
export function linear(w, x, b) {
  const d = x.length;
  const y = new Float32Array(w.length / d);
  for (let i = 0, at = 0; i < y.length; i++, at += d) {
    let [s, t] = [b ? b[i] : 0, 0]; // two sums do not wait for each other
    for (let c = 0; c < d - 1; c += 2) {
      s += w[at + c] * x[c];
      t += w[at + c + 1] * x[c + 1];
    }
    if (d % 2) s += w[at + d - 1] * x[d - 1];
    y[i] = s + t;
  }
  return y;
}

export function dot(x, y) {
  let sum = 0;
  for (let c = 0; c < x.length; c++) sum += x[c] * y[c];
  return sum;
}

// the average of vectors by their weights
export function weightedSum(weights, values) {
  const sum = new Float32Array(values[0].length);
  for (let j = 0; j < values.length; j++)
    for (let c = 0; c < sum.length; c++) sum[c] += weights[j] * values[j][c];
  return sum;
}

// x / sqrt(mean(x^2) + eps), each number times its gain
export function rmsNorm(x, gain, eps = 1e-5) {
  const scale = 1 / Math.sqrt(dot(x, x) / x.length + eps);
  return x.map((number, c) => number * scale * (gain ? gain[c] : 1));
}

// entries c and c + d/2 are a point of the plane, turned by position / base^(2c/d)
export function rotary(x, position, base = 10000) {
  const half = x.length / 2;
  const turned = new Float32Array(x.length);
  for (let c = 0; c < half; c++) {
    const angle = position * base ** (-c / half);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    turned[c] = x[c] * cos - x[c + half] * sin;
    turned[c + half] = x[c] * sin + x[c + half] * cos;
  }
  return turned;
}

// The softmax of scores and the average of values, a tile at a time: the states after each tile.
// m is the largest score so far, l the sum of e^(score - m), o that sum with the values in it.
export function onlineSoftmax(scores, values, size) {
  const states = [{ m: -Infinity, l: 0, o: 0, shrink: 0 }];
  for (let begin = 0; begin < scores.length; begin += size) {
    const before = states.at(-1);
    const tile = [...scores.slice(begin, begin + size)];
    const m = Math.max(before.m, ...tile);
    const shrink = Math.exp(before.m - m); // what was summed with the old m is too large by this
    let [l, o] = [shrink * before.l, shrink * before.o];
    tile.forEach((score, j) => {
      l += Math.exp(score - m);
      o += Math.exp(score - m) * values[begin + j];
    });
    states.push({ m, l, o, shrink });
  }
  return states;
}

// One step of a gated recurrent unit. The rows of w_x and w_h: reset, update, new.
export function gruCell(x, h, { w_x, w_h, b_x, b_h }) {
  const [from, past] = [linear(w_x, x, b_x), linear(w_h, h, b_h)];
  const d = h.length;
  return h.map((old, c) => {
    const reset = sigmoid(from[c] + past[c]);
    const update = sigmoid(from[d + c] + past[d + c]);
    const fresh = Math.tanh(from[2 * d + c] + reset * past[2 * d + c]);
    return (1 - update) * fresh + update * old;
  });
}

const sigmoid = x => 1 / (1 + Math.exp(-x));

export function transpose(w, columns) {
  const rows = w.length / columns;
  return w.map((_, at) => w[(at % rows) * columns + Math.floor(at / rows)]);
}

export const argmax = x => x.reduce((best, value, i) => (value > x[best] ? i : best), 0);

// The tensors of a safetensors file of 16-bit numbers, by name: 8 bytes with the length of the
// header, the header (JSON), the numbers.
export function readTensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(header)) {
    if (dtype !== "F16") throw new Error(`${name} is ${dtype}, and should be F16`);
    const bits = new Uint16Array(
      buffer.slice(8 + length + data_offsets[0], 8 + length + data_offsets[1]),
    );
    tensors[name] = { shape, data: Float32Array.from(bits, x => HALVES[x]) };
  }
  return tensors;
}

// all numbers of 16 bits: sign, 5 bits of exponent, 10 of fraction
const HALVES = Float32Array.from({ length: 2 ** 16 }, (_, bits) => {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
  return bits >> 15 ? -size : size;
});
