// Lesson 10's language model: course_lib/pretrained/shakespeare_model.py, in the browser. It keeps
// the keys and values of what it has read, so that a new character costs one step.
import { dot, linear, logSumExp, rmsNorm, rotary, softmax, weightedSum } from "./maths.js";

export class LanguageModel {
  constructor(tensors, { vocab, layers, heads, window }) {
    Object.assign(this, { vocab, heads, window });
    const read = name => tensors[name].data;
    this.d = tensors["embedding.table"].shape[1];
    this.table = read("embedding.table");
    this.output = read("output.weight");
    this.lastGain = read("last_norm.gain");
    this.blocks = Array.from({ length: layers }, (_, i) => {
      const [name, to] = [
        `blocks.${i}.attention`,
        x => `blocks.${i}.attention.sublayer.attention.w_${x}`,
      ];
      const layer = x => ({ w: read(`${to(x)}.weight`), b: read(`${to(x)}.bias`) });
      return {
        gains: [read(`${name}.gain`), read(`blocks.${i}.feed_forward.gain`)],
        q: layer("q"),
        k: layer("k"),
        v: layer("v"),
        o: layer("o"),
        up: read(`blocks.${i}.feed_forward.sublayer.w_1.weight`),
        down: read(`blocks.${i}.feed_forward.sublayer.w_2.weight`),
      };
    });
    this.without([]);
  }

  // switch off such parts as "head 0 3", "norm 2 1", "norm last", and no others
  without(parts) {
    this.off = new Set(parts);
    this.forget();
  }

  forget() {
    this.read = "";
    this.cache = this.blocks.map(() =>
      Array.from({ length: this.heads }, () => ({ k: [], v: [] })),
    );
  }

  // The logits after a text. Of a long one it sees between half a window and a whole one, so that it
  // begins anew only every half window; what it has read already is not read again.
  after(text) {
    const half = this.window / 2;
    const seen = text.slice(half * Math.max(0, Math.ceil((text.length - this.window) / half)));
    if (!seen.startsWith(this.read)) this.forget();
    for (const character of seen.slice(this.read.length)) this.step(character);
    return this.logits;
  }

  // read one character more
  step(character) {
    const token = this.vocab.indexOf(character);
    const place = this.read.length;
    this.read += character;
    let x = this.table.slice(token * this.d, (token + 1) * this.d);
    this.weights = this.blocks.map((block, layer) => {
      const { found, weights } = this.attend(
        block,
        layer,
        this.norm(x, block.gains[0], `${layer} 0`),
        place,
      );
      x = add(x, found);
      const wide = linear(block.up, this.norm(x, block.gains[1], `${layer} 1`));
      x = add(
        x,
        linear(
          block.down,
          wide.map(number => Math.max(0, number) ** 2),
        ),
      );
      return weights;
    });
    this.logits = linear(this.output, this.norm(x, this.lastGain, "last"));
    return this.logits;
  }

  // a norm that is switched off does not divide; its gain stays
  norm(x, gain, name) {
    return this.off.has(`norm ${name}`) ? x.map((number, c) => number * gain[c]) : rmsNorm(x, gain);
  }

  // causal attention with rotary positions; a head that is switched off finds zeros
  attend({ q, k, v, o }, layer, x, place) {
    const d = this.d / this.heads;
    const [queries, keys, values] = [q, k, v].map(({ w, b }) => linear(w, x, b));
    const joined = new Float32Array(this.d);
    const weights = this.cache[layer].map((kept, head) => {
      const own = all => all.subarray(head * d, (head + 1) * d);
      kept.k.push(rotary(rmsNorm(own(keys)), place));
      kept.v.push(own(values));
      const query = rotary(rmsNorm(own(queries)), place);
      const looked = softmax(kept.k.map(key => (1.5 / Math.sqrt(d)) * dot(query, key)));
      if (!this.off.has(`head ${layer} ${head}`)) joined.set(weightedSum(looked, kept.v), head * d);
      return looked;
    });
    return { found: linear(o.w, joined, o.b), weights };
  }

  // The mean loss of a text's characters but the first, in nats. The page stays awake meanwhile.
  // It is null if `stale()` says that nobody waits for it any more.
  async loss(text, stale = () => false) {
    const reader = Object.assign(Object.create(LanguageModel.prototype), this);
    reader.forget();
    let sum = 0;
    for (let i = 0; i < text.length - 1; i++) {
      const logits = reader.step(text[i]);
      sum += logSumExp(logits) - logits[this.vocab.indexOf(text[i + 1])];
      if (i % 8 === 0) await new Promise(done => setTimeout(done));
      if (stale()) return null;
    }
    return sum / (text.length - 1);
  }
}

const add = (x, y) => x.map((number, c) => number + y[c]);

// Which tokens may be drawn, by top-p: the likeliest whose probabilities reach p together
export function nucleus(probabilities, p) {
  const order = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]);
  const kept = new Set();
  for (let sum = 0, i = 0; i < order.length && (i === 0 || sum < p); i++) {
    kept.add(order[i]);
    sum += probabilities[order[i]];
  }
  return kept;
}

// The distribution that is drawn from
export function distribution(logits, temperature, p) {
  const warm = softmax(logits, null, temperature);
  const kept = nucleus(warm, p);
  const total = [...kept].reduce((sum, token) => sum + warm[token], 0);
  return warm.map((probability, token) => (kept.has(token) ? probability / total : 0));
}

export function draw(probabilities, random = Math.random()) {
  const [last] = [...probabilities.keys()].filter(token => probabilities[token] > 0).slice(-1);
  for (let token = 0, sum = 0; token < probabilities.length; token++) {
    sum += probabilities[token];
    if (random < sum) return token;
  }
  return last;
}
