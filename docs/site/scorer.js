// How the search weighs what it finds. Sphinx puts each attribute of a class before all pages. Here pages come first: those
// that have the query among their keywords, those that are named or entitled by a word of it, then those whose text has it;
// and of Python's names the public ones.
const asked = (new URLSearchParams(location.search).get("q") || "").toLowerCase();
const words = asked.split(/[^a-z]+/).filter((word) => word.length > 2);
const beside = ["changelog", "contributing", "readme", "security", "versions"]; // pages that name everything

var Scorer = {
  title: 15, // a page's, or a heading's
  partialTitle: 9,
  term: 7, // in the text
  partialTerm: 2,
  objNameMatch: 5,
  objPartialMatch: 0,
  objPrio: {},
  objPrioDefault: 0,
  score: (result) => {
    if (result[2].startsWith("#index-")) result[2] = ""; // a keyword leads to the page, which is then listed once
    const [page, title, anchor, , score] = result;
    const isNamed = !anchor && words.some((word) => page.split("-").includes(word));
    const isPublic = title.toLowerCase() === `geval_py.${asked}`;
    return score + (isNamed ? 10 : 0) + (isPublic ? 10 : 0) - (beside.includes(page) ? 4 : 0);
  },
};
