// The search box of the top bar: Ctrl-K and / go there, arrow keys walk the results, Enter opens the first.
"use strict";

const palette = document.querySelector(".palette");
const asks = palette?.querySelector("input[type=search]");

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  if (!asks || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  asks.focus();
  asks.select();
});

palette?.addEventListener("keydown", (event) => {
  const links = [...palette.querySelectorAll("#palette-results a")], place = links.indexOf(document.activeElement);
  if (event.key === "Escape") {
    document.activeElement.blur();
  } else if (event.key === "Enter" && document.activeElement === asks) {
    const isFresh = palette.querySelector("[data-q]")?.dataset.q === asks.value;
    if (!links.length || !isFresh) return; // the form is sent, and answered by a page
    event.preventDefault();
    links[0].click();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    (links[place + (event.key === "ArrowDown" ? 1 : -1)] ?? asks).focus();
  }
});
