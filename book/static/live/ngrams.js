// Lesson 10's counts with Kneser-Ney smoothing: course_lib/corpus.py, without its tables. The text
// is here, so what followed a context is found by going through it.
export class NGrams {
  // discounts: for each length of context, what is taken off a count of 0, 1, 2, and 3 or more
  constructor(text, vocab, discounts) {
    Object.assign(this, { vocab, discounts });
    this.number = new Map([...vocab].map((character, i) => [character, i]));
    this.tokens = Uint8Array.from(text, character => this.number.get(character));
    const places = vocab.map(() => []);
    this.tokens.forEach((token, at) => places[token].push(at + 1));
    this.places = places; // those that follow each character
    const uniform = new Float64Array(vocab.length).fill(1 / vocab.length);
    this.unigrams = this.refine(uniform, this.tokens.keys(), 0);
  }

  // the distribution of the next character after a text
  after(text) {
    const context = [...text.slice(1 - this.discounts.length)].map(x => this.number.get(x));
    let [found, places] = [this.unigrams, null];
    // the context grows to the left, and fewer places follow it
    for (let length = 1; length <= context.length; length++) {
      const wanted = context.at(-length);
      if (places) places = places.filter(at => this.tokens[at - length] === wanted);
      else places = this.places[wanted].filter(at => at < this.tokens.length);
      found = this.refine(found, places, length);
    }
    return found;
  }

  // the mean loss of a text's characters but the first, in nats
  loss(text) {
    const next = [...text].slice(1);
    const losses = next.map((x, i) => -Math.log(this.after(text.slice(0, i + 1))[this.number.get(x)]));
    return losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
  }

  // P(w | h) from P(w | h'), where h is one character longer, and places are those that follow h
  refine(shorter, places, length) {
    const { tokens, vocab } = this;
    const longest = length === this.discounts.length - 1;
    const counts = new Float64Array(vocab.length);
    const seen = new Uint8Array(vocab.length ** 2); // of a character before h, and one after it
    for (const at of places) {
      // the longest context counts occurrences, a shorter one the characters that came before it
      if (!longest) {
        const pair = tokens[at - length - 1] * vocab.length + tokens[at];
        if (at === length || seen[pair]) continue;
        seen[pair] = 1;
      }
      counts[tokens[at]]++;
    }
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (!total) return shorter;
    const taken = counts.map(count => this.discounts[length][Math.min(count, 3)]);
    const reserved = taken.reduce((sum, part) => sum + part, 0) / total;
    return shorter.map((p, w) => (counts[w] - taken[w]) / total + reserved * p);
  }
}
