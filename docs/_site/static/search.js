// Shows each page once among the results of the search, and one line about it; of several words, all count.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results) return;
  // A page, its sections and the object that it describes are results of their own. Sphinx counts what this returns.
  const search = Search._performSearch;
  Search._performSearch = (...query) => {
    const seen = new Set();
    const once = ([docname]) => !seen.has(docname) && seen.add(docname);
    // The best is last.
    return search(...query).reverse().filter(once).reverse();
  };
  // Sphinx scores a page by the best of the words; here it is by their mean, so that two words in headings are better.
  const terms = Search.performTermsSearch;
  Search.performTermsSearch = (words, excluded) => {
    const scores = [...words].map((word) => new Map(terms(new Set([word]), excluded).map((found) => [found[0], found[4]])));
    return terms(words, excluded).map((found) => {
      const mean = scores.reduce((sum, score) => sum + (score.get(found[0]) ?? 0), 0) / scores.length;
      return found.with(4, mean);
    });
  };
  // A name that has all of several words in it, such as set_default_dtype, is probably what they mean.
  const objects = Search.performObjectSearch;
  Search.performObjectSearch = (word, words) =>
    objects(word, words).map((found) => found.with(4, found[4] + (words.size > 1 ? 4 : 0)));
  const describe = () => {
    for (const item of results.querySelectorAll("ul.search > li")) {
      const name = item.querySelector("a").getAttribute("href").replace(/[?#].*/, "");
      const text = SUMMARIES[name.replace(/\.html$/, "")];
      if (!text || item.querySelector(".summary")) continue;
      const line = document.createElement("p");
      line.className = "summary";
      line.textContent = text;
      item.append(line);
    }
  };
  new MutationObserver(describe).observe(results, { childList: true, subtree: true });
});
