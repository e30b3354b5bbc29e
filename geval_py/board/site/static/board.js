"use strict";

// A leaderboard's sorting and filtering (ARIA Authoring Practices, "Sortable Table Example"). Rows come sorted.
for (const table of document.querySelectorAll("table.board")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  const status = document.querySelector("[role=status]");
  const form = document.querySelector("form.filter");
  const words = new Intl.Collator("en", { numeric: true });

  const keyOf = (row, column, kind) => {
    const key = row.cells[column].dataset.key ?? "";
    return kind === "order" ? rows.indexOf(row) : kind === "number" && key !== "" ? Number(key) : key;
  };

  const sort = (header) => {
    const kind = header.querySelector("button").dataset.kind;
    const direction = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    const sign = direction === "ascending" ? 1 : -1;
    const column = headers.indexOf(header);
    const keyed = rows.map((row) => [keyOf(row, column, kind), row]);
    keyed.sort(([one], [other]) => {
      if (one === "" || other === "") return (one === "") - (other === ""); // what has no value stays last
      return sign * (typeof one === "number" ? (one > other) - (one < other) : words.compare(one, other));
    });
    headers.forEach((each) => each.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", direction);
    body.append(...keyed.map(([, row]) => row));
  };

  headers.forEach((header) => header.querySelector("button")?.addEventListener("click", () => sort(header)));

  const filter = () => {
    const wanted = form.querySelector("#search").value.trim().toLowerCase();
    const choices = [...form.querySelectorAll("select")].map((select) => select.value).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const own = JSON.parse(row.dataset.choices);
      const found = row.textContent.toLowerCase() + own.join(" ").toLowerCase();
      row.hidden = !(found.includes(wanted) && choices.every((choice) => own.includes(choice)));
      shown += !row.hidden;
    }
    status.textContent = `${shown} of ${rows.length} ${rows.length === 1 ? "entry" : "entries"} shown`;
  };

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
}

// Two rows of the table of figures, side by side; the address names them: #CODE,CODE.
for (const table of document.querySelectorAll("table.compared")) {
  const rows = [...table.tBodies[0].rows];
  const headers = [...table.tHead.rows[0].cells];
  const form = document.querySelector("form.pick");
  const place = document.getElementById("side-by-side");
  const selects = [...form.querySelectorAll("select")];

  const verdict = (one, other) => {
    if (one.dataset.phase !== other.dataset.phase) return "They were not compared line by line, because they are not in one leaderboard.";
    const groups = [one, other].map((row) => JSON.parse(row.dataset.groups));
    if (!groups.every((each) => each.length)) return "They were not compared line by line, because one of them is not ranked.";
    const shared = groups[0].some((group) => groups[1].includes(group));
    return `They are ${shared ? "not " : ""}significantly different.`;
  };

  const make = (name, text, scope) => {
    const element = document.createElement(name);
    element.textContent = text;
    if (scope) element.scope = scope;
    return element;
  };

  const show = () => {
    const [one, other] = selects.map((select) => rows[select.selectedIndex]);
    const own = document.createElement("table");
    const head = own.createTHead().insertRow();
    head.append(make("td", ""));
    for (const row of [one, other]) {
      const cell = make("th", "", "col");
      cell.append(...[...row.cells[0].childNodes].map((node) => node.cloneNode(true)));
      head.append(cell);
    }
    const body = own.createTBody();
    headers.slice(1).forEach((header, index) => {
      const column = index + 1;
      const line = body.insertRow();
      const name = make("th", "", "row");
      name.append(...[...header.childNodes].map((node) => node.cloneNode(true)));
      line.append(name);
      for (const row of [one, other]) line.append(make("td", row.cells[column].textContent));
    });
    const box = document.createElement("div");
    box.className = "scroll";
    box.tabIndex = 0;
    box.role = "region";
    box.ariaLabel = "The two side by side";
    box.append(own);
    place.replaceChildren(make("p", one === other ? "Choose two." : verdict(one, other)), box);
    place.hidden = false;
  };

  const choose = () => {
    const codes = decodeURIComponent(location.hash.slice(1)).split(",");
    const found = codes.map((code) => rows.findIndex((row) => row.dataset.code === code));
    selects.forEach((select, index) => { select.selectedIndex = found[index] >= 0 ? found[index] : index; });
    show();
  };

  for (const select of selects) {
    for (const row of rows) select.append(new Option(row.cells[0].textContent.trim().replace(/\s+/g, " ")));
    select.addEventListener("change", () => {
      history.replaceState(null, "", `#${selects.map((each) => rows[each.selectedIndex].dataset.code).join(",")}`);
      show();
    });
  }
  form.hidden = false;
  window.addEventListener("hashchange", choose);
  choose();
}

// On phones, the rows of a table become cards, whose cells have the headers as labels.
for (const table of document.querySelectorAll("main table:not(.board)")) {
  const headers = [...(table.tHead?.rows[0].cells ?? [])].map((header) => header.textContent.trim());
  if (!headers.length || table.closest("#side-by-side")) continue;
  table.classList.add("carded");
  table.setAttribute("role", "table"); // styles take the roles away
  for (const part of [table.tHead, ...table.tBodies]) part.setAttribute("role", "rowgroup");
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    [...row.cells].forEach((cell, index) => {
      const kind = row.parentElement === table.tHead ? "columnheader" : cell.tagName === "TH" ? "rowheader" : "cell";
      cell.setAttribute("role", kind);
      cell.dataset.label = headers[index];
    });
  }
}
document.querySelector("header nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// The time that is left until a deadline, and its moment where the reader is; without scripts there are UTC and AoE.
{
  const UNITS = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000]];
  const left = (until) => {
    const time = until - Date.now();
    if (time <= 0) return "over";
    const [unit, size] = UNITS.find(([, each]) => time >= 2 * each) ?? UNITS[2];
    const count = Math.max(1, Math.floor(time / size));
    return `${count} ${unit}${count === 1 ? "" : "s"} left`;
  };
  const HERE = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const here = (until) => (until.getTimezoneOffset() ? `; ${until.toLocaleString("en-GB", HERE)} your time` : "");
  const write = () => {
    for (const place of document.querySelectorAll("[data-until]")) {
      const until = new Date(place.dataset.until);
      place.textContent = ` (${left(until)}${here(until)})`;
    }
  };
  write();
  setInterval(write, 60_000);
}
