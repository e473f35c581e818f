// Scores of the results of the search: those of Sphinx, except that an operation comes before a class of its name.
// Sphinx declares the same variable, so it must be one that can be declared twice.
var Scorer = {
  score: ([docname, , , , score]) => score + (docname.startsWith("operations/") ? 1 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
