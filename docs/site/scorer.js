// How the search weighs what it finds. Sphinx puts each attribute of a class before all pages. Here pages come first: those
// that have the query among their keywords, or keywords in the query; those that are named or entitled by a word of it; then
// headings with all its words, and pages whose text has them, or most of them; and of Python's names the public ones.
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
    const isHeading = title.toLowerCase().endsWith(` > ${asked}`);
    const isPublic = title.toLowerCase() === `geval_py.${asked}`;
    return score + (isNamed || isHeading || isPublic ? 10 : 0) - (beside.includes(page) ? 4 : 0);
  },
};

const stemmer = new Stemmer();
const stems = (text) => splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word));

const resultOf = (file, title, anchor, score) => {
  const { docnames, titles, filenames } = Search._index;
  const shown = titles[file] === title ? title : `${titles[file]} > ${title}`;
  return [docnames[file], shown, anchor ? `#${anchor}` : "", null, score, filenames[file], SearchResultKind.title];
};

// Return the pages that have some of the keywords "hand in" if somebody asks "how do I hand in my output".
const searchKeywords = () => {
  const query = stems(asked);
  const { indexentries, titles } = Search._index;
  return Object.entries(indexentries)
    .filter(([keyword]) => stems(keyword).every((stem) => query.includes(stem)))
    .flatMap(([keyword, places]) =>
      places
        .filter(([, , isMain]) => isMain)
        .map(([file]) => resultOf(file, titles[file], "", 20 + Math.round((60 * keyword.length) / asked.length))),
    );
};

// Return the headings that have all of several words; they come before pages that have some words in headings.
const searchHeadings = (terms) =>
  Object.entries(terms.size > 1 ? Search._index.alltitles : {})
    .filter(([title]) => [...terms].every((term) => stems(title).includes(term)))
    .flatMap(([title, places]) => places.map(([file, anchor]) => resultOf(file, title, anchor, Scorer.title + 6)));

// Return the pages that have all words or, if no page has, those that have the most of them.
const searchPages = Search.performTermsSearch;
const searchMost = (terms, excluded) => {
  const pages = searchPages(terms, excluded);
  if (pages.length) return pages;
  const parts = [...terms].flatMap((term) => searchPages(new Set([term]), excluded));
  const count = ([page]) => parts.filter(([other]) => other === page).length;
  const most = Math.max(...parts.map(count));
  return parts.filter((part) => count(part) === most); // once for each word: Sphinx shows the best one
};

Search.performTermsSearch = (terms, excluded) => [
  ...searchKeywords(),
  ...searchHeadings(terms),
  ...searchMost(terms, excluded),
];
