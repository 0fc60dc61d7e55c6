// Lesson 02's encoder-decoder with attention: course_lib/seq2seq.py, in the browser.
import { argmax, dot, gruCell, linear, softmax, transpose, weightedSum } from "./maths.js";

const [START, STOP, LONGEST] = [1, 2, 40];

export class Pronouncer {
  // letters and sounds: what each number of the vocabularies means
  constructor(tensors, { letters, sounds }) {
    Object.assign(this, { letters, sounds });
    const read = name => tensors[name].data;
    const gru = name => ({
      w_x: transpose(read(`${name}.w_x`), tensors[`${name}.w_x`].shape[1]),
      w_h: transpose(read(`${name}.w_h`), tensors[`${name}.w_h`].shape[1]),
      b_x: read(`${name}.b_x`),
      b_h: read(`${name}.b_h`),
    });
    const table = name => {
      const { data, shape } = tensors[`${name}.weight`];
      return token => data.subarray(token * shape[1], (token + 1) * shape[1]);
    };
    this.letter = table("encoder.embedding");
    this.sound = table("embedding");
    this.rightward = gru("encoder.rightward");
    this.leftward = gru("encoder.leftward");
    this.decoder = gru("decoder");
    this.output = { w: read("output.weight"), b: read("output.bias") };
  }

  // a state for each letter and for the end, and the decoder's first state
  encode(word) {
    const xs = [...[...word].map(x => this.letters.indexOf(x)), STOP].map(this.letter);
    const reader = (cell, inputs) => {
      let h = new Float32Array(cell.b_h.length / 3);
      return inputs.map(x => (h = gruCell(x, h, cell)));
    };
    const right = reader(this.rightward, xs);
    const left = reader(this.leftward, [...xs].reverse()).reverse();
    return {
      states: right.map((state, j) => join(state, left[j])),
      first: join(right.at(-1), left[0]),
    };
  }

  // read one sound, look at the letters, predict the next sound
  step(sound, h, states) {
    h = gruCell(this.sound(sound), h, this.decoder);
    const weights = softmax(states.map(state => dot(h, state)));
    const context = weightedSum(weights, states);
    return { h, weights, p: softmax(linear(this.output.w, join(h, context), this.output.b)) };
  }

  // yields the likeliest sound after the likeliest, until STOP, which is yielded as well
  *pronounce(word) {
    const { states, first } = this.encode(word);
    let [h, token] = [first, START];
    for (let i = 0; i < LONGEST && token !== STOP; i++) {
      const { h: next, weights, p } = this.step(token, h, states);
      [h, token] = [next, argmax(p)];
      yield { token, sound: token === STOP ? "end" : this.sounds[token], weights, p: p[token] };
    }
  }

  // the probability of each of these tokens, where the decoder reads those before it
  probabilities(word, tokens) {
    const { states, first } = this.encode(word);
    let h = first;
    return tokens.map((token, i) => {
      const next = this.step(i ? tokens[i - 1] : START, h, states);
      h = next.h;
      return next.p[token];
    });
  }

  // how far the probability of each token falls, on average, with another letter at place j
  drops(word, tokens, j) {
    const p = this.probabilities(word, tokens);
    const others = this.letters.filter(x => x.length === 1 && x !== word[j]);
    const replaced = others.map(x =>
      this.probabilities(word.slice(0, j) + x + word.slice(j + 1), tokens),
    );
    return p.map((own, i) => own - replaced.reduce((sum, row) => sum + row[i], 0) / others.length);
  }
}

function join(x, y) {
  const both = new Float32Array(x.length + y.length);
  both.set(x);
  both.set(y, x.length);
  return both;
}
