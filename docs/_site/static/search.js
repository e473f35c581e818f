// Shows one line about the page of each result of the search.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results) return;
  const describe = (item) => {
    const link = item.querySelector("a");
    if (!link || item.querySelector(".summary")) return;
    const name = link.getAttribute("href").split("#")[0].split("?")[0].replace(/\.html$/, "");
    const text = SUMMARIES[name];
    if (!text) return;
    const line = document.createElement("p");
    line.className = "summary";
    line.textContent = text;
    item.append(line);
  };
  new MutationObserver(() => results.querySelectorAll("li").forEach(describe)).observe(results, {
    childList: true,
    subtree: true,
  });
});
