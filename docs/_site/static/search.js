// Shows one line about the page of each result of the search, and each page once.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results) return;
  const describe = () => {
    const seen = new Set();
    for (const item of results.querySelectorAll("ul.search > li")) {
      const link = item.querySelector("a");
      const [name, anchor] = link.getAttribute("href").replace(/\?[^#]*/, "").split("#");
      // A page and the object that it describes are two results; other anchors are sections.
      const whole = !anchor || item.classList.contains("kind-object");
      item.hidden = whole && seen.has(name);
      if (whole) seen.add(name);
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
