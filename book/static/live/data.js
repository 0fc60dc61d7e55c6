// The models of the live parts, each loaded once, and only when it is asked for.
import { LanguageModel } from "./language_model.js";
import { readTensors } from "./maths.js";
import { NGrams } from "./ngrams.js";
import { Pronouncer } from "./seq2seq.js";

const once = load => {
  let loaded;
  return () => (loaded ??= load());
};
const get = async name => {
  const answer = await fetch(new URL(`data/${name}`, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer;
};
const meanings = once(async () => (await get("meanings.json")).json());
const weights = async name => readTensors(await (await get(`${name}.safetensors`)).arrayBuffer());

export const pronouncer = once(async () => {
  const [tensors, { pronouncer }] = await Promise.all([weights("pronouncer"), meanings()]);
  return new Pronouncer(tensors, pronouncer);
});

export const languageModel = once(async () => {
  const [tensors, { language_model }] = await Promise.all([weights("language_model"), meanings()]);
  return Object.assign(new LanguageModel(tensors, language_model), {
    passage: language_model.passage,
  });
});

export const counts = once(async () => {
  const [text, { language_model }] = await Promise.all([get("shakespeare.txt"), meanings()]);
  return new NGrams(await text.text(), language_model.vocab, language_model.discounts);
});
