// What pagefind finds, each page with the place of the words in it.
const MOST = 12;
const asked = new URLSearchParams(location.search).get("q") ?? "";
const [field, count, list] = ["[role=search] [name=q]", "#count", "#found"].map(x =>
  document.querySelector(`article ${x}`),
);
field.value = asked;
count.textContent = "";
if (asked) {
  const pagefind = await import(new URL("../pagefind/pagefind.js", import.meta.url));
  const { results } = await pagefind.search(asked);
  count.textContent = `${results.length || "No"} page${results.length === 1 ? "" : "s"} with “${asked}”`;
  for (const found of results.slice(0, MOST)) {
    const { url, meta, excerpt } = await found.data();
    const link = Object.assign(document.createElement("a"), { href: url, textContent: meta.title });
    const place = Object.assign(document.createElement("p"), { innerHTML: excerpt });
    const item = document.createElement("li");
    item.append(link, place);
    list.append(item);
  }
} else field.focus();
