// Scores of the results of the search. For words of prose, guides come before lists and generated pages; for the name of
// an operation or a class, its page comes before the guides, and an operation before a class of its name.
// Sphinx declares the same variable, so it must be one that can be declared twice.
var Scorer = {
  score: ([docname, , , , score, , kind]) => {
    const generated = docname.includes("/");
    const lists = ["changelog", "layers", "messages", "older_names", "operations", "rules", "spellings"];
    const guide = generated || lists.includes(docname) ? 0 : 9;
    // Sphinx gives 16 to a name or a title of a page that is what was searched for, and less to a part of one.
    const exact = score >= 16 && (kind === "object" || kind === "title") ? 20 : 0;
    const heading = !exact && kind === "title" ? 10 : 0;
    return score + exact + heading + guide + (docname.startsWith("operations/") ? 1 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
