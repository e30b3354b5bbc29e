"use strict";
// A page opened from a disk may not fetch other pages, so there are no excerpts below the results of a search.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What scrolls in its own box can be reached by the keyboard.
const focusable = () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
};

addEventListener("DOMContentLoaded", () => {
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "all pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "on this page");
  for (const list of document.querySelectorAll(".sig dl")) // a function's arguments, which are no definitions
    list.outerHTML = list.outerHTML.replaceAll(/(?<=<\/?)d[ld]\b/g, "div");
  for (const image of document.querySelectorAll("article img")) {
    const link = document.createElement("a"); // to its full size
    link.href = image.src;
    image.replaceWith(link);
    link.append(image);
  }
  focusable();
  addEventListener("resize", focusable);
});
