// The tree: opening and closing levels that htmx has loaded, arrow keys, and which object is shown.
"use strict";

const rows = () => [...document.querySelectorAll(".tree .row > a")].filter((link) => link.offsetParent);
const toggleOf = (link) => link.parentElement.querySelector("button.toggle");
const isOpen = (toggle) => toggle.getAttribute("aria-expanded") === "true";

function setOpen(toggle, open) {
  toggle.setAttribute("aria-expanded", String(open));
  document.getElementById(toggle.getAttribute("aria-controls")).hidden = !open;
}

// htmx has its own listener on the button and loads the level the first time it is opened.
document.addEventListener("click", (event) => {
  const toggle = event.target.closest("button.toggle");
  if (toggle) setOpen(toggle, !isOpen(toggle));
});

function walk(link, key) {
  const all = rows();
  const place = all.indexOf(link);
  const toggle = toggleOf(link);
  const parent = link.closest("ul").parentElement.querySelector(":scope > .row > a");
  switch (key) {
    case "ArrowDown": return all[place + 1];
    case "ArrowUp": return all[place - 1];
    case "Home": return all[0];
    case "End": return all[all.length - 1];
    case "ArrowRight":
      if (!toggle) return link;
      if (isOpen(toggle)) return all[place + 1];
      toggle.click();
      return link;
    case "ArrowLeft":
      if (!toggle || !isOpen(toggle)) return parent;
      setOpen(toggle, false);
      return link;
    default: return null;
  }
}

document.addEventListener("keydown", (event) => {
  const row = event.target.closest(".tree .row");
  if (!row || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const next = walk(row.querySelector("a"), event.key);
  if (next === null) return;
  event.preventDefault();
  if (next) next.focus();
});

// What is shown is marked in the tree, and comes into view where the tree lies above it (on a phone).
function markShown() {
  document.querySelectorAll(".tree a").forEach((link) => {
    if (link.getAttribute("href") === location.pathname) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
}

document.addEventListener("htmx:pushedIntoHistory", markShown);
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id !== "main") return;
  if (event.target.getBoundingClientRect().top > window.innerHeight * 0.4) event.target.scrollIntoView();
  else window.scrollTo({ top: 0 });
});
