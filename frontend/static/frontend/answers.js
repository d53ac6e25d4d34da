// After htmx swaps: marks invalid fields, and keeps the focus on the page. Also copies what is to be copied.
"use strict";

let wasInside = false;
document.addEventListener("htmx:beforeSwap", (event) => {
  wasInside = event.target.id === "outside" && event.target.contains(document.activeElement);
});

// The button that had the focus may have been replaced.
document.addEventListener("htmx:afterSettle", () => {
  if (wasInside && document.activeElement === document.body) document.getElementById("outside-said")?.focus();
  wasInside = false;
});

// The content has changed: scroll to its top.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "main") return;
  window.scrollTo({ top: 0 });
  const lost = !document.activeElement || document.activeElement === document.body;
  if (lost || !document.activeElement.checkVisibility()) event.target.focus({ preventScroll: true });
});

const CAME_BACK = "came-back";
window.addEventListener("popstate", () => sessionStorage.setItem(CAME_BACK, "yes")); // htmx then loads the page anew
if (sessionStorage.getItem(CAME_BACK)) {
  sessionStorage.removeItem(CAME_BACK);
  document.getElementById("main")?.focus({ preventScroll: true });
}

document.addEventListener("htmx:afterSettle", (event) => {
  const form = event.target.closest("form.settings");
  if (!form || event.target.id !== "said") return;
  const wrong = [];
  form.querySelectorAll("p.error[id$='-error']").forEach((message) => {
    const field = document.getElementById(message.id.replace(/-error$/, ""));
    if (!field) return;
    if (message.textContent.trim()) {
      field.setAttribute("aria-invalid", "true");
      wrong.push(field);
    } else {
      field.removeAttribute("aria-invalid");
    }
  });
  for (const field of wrong) field.closest("details")?.setAttribute("open", "");
  if (wrong.length) wrong[0].focus();
});

// Copies the field before the button; over plain HTTP there is no clipboard, so by its selection.
document.addEventListener("click", async ({ target }) => {
  if (!target.matches?.("button.copy")) return;
  const field = target.previousElementSibling;
  field.select();
  if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
  else document.execCommand("copy");
  target.textContent = "Copied";
});
