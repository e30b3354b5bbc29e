"use strict";

// Sorts and searches the table of lines (ARIA Authoring Practices, "Sortable Table Example"), and shows 20 of them, by
// the style sheet, until more are asked for. Rows come sorted.
const table = document.getElementById("lines"); // none where no line alone has a score
if (table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  const words = new Intl.Collator("en", { numeric: true });

  const keyOf = (row, column, kind) => {
    const cell = row.cells[column];
    if (kind === "text") return cell.textContent;
    const number = Number((cell.dataset.key ?? cell.textContent).replace(/[,<% ]/g, ""));
    return Number.isNaN(number) ? "" : number;
  };

  const sort = (header) => {
    const kind = header.dataset.sort;
    const first = kind === "text" || header === headers[0] ? "ascending" : "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    const direction = header.getAttribute("aria-sort") === first ? other : first;
    const sign = direction === "ascending" ? 1 : -1;
    const keyed = rows.map((row) => [keyOf(row, headers.indexOf(header), kind), row]);
    keyed.sort(([one], [two]) => {
      if (one === "" || two === "") return (one === "") - (two === ""); // what has no value stays last
      return sign * (kind === "text" ? words.compare(one, two) : (one > two) - (one < two));
    });
    headers.forEach((each) => each.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", direction);
    body.append(...keyed.map(([, row]) => row));
  };

  for (const header of headers.filter((each) => each.dataset.sort)) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.append(button);
  }

  const form = document.querySelector("form[role=search]");
  const status = form.querySelector("[role=status]");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  form.addEventListener("submit", (event) => event.preventDefault());
  const button = document.querySelector("#more button");
  let matching = rows.length;
  const count = () => {
    const isBrief = table.classList.contains("brief");
    button.textContent = isBrief ? `Show more: all ${matching} lines` : "Show 20 lines";
    button.setAttribute("aria-expanded", String(!isBrief));
    button.parentElement.hidden = matching <= 20;
  };
  form.addEventListener("input", () => {
    const wanted = form.querySelector("input").value.trim().toLowerCase();
    matching = 0;
    rows.forEach((row, place) => {
      row.hidden = !texts[place].includes(wanted);
      matching += !row.hidden;
    });
    status.textContent = `${matching} of ${rows.length} lines`;
    count();
  });
  button.addEventListener("click", () => {
    table.classList.toggle("brief");
    count();
  });
  table.classList.add("brief");
  count();
  form.hidden = false;
}
