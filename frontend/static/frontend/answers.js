// What the server answers in place: wrong fields are marked, and the focus never falls off the page.
"use strict";

let wasInside = false;
document.addEventListener("htmx:beforeSwap", (event) => {
  wasInside = event.target.id === "outside" && event.target.contains(document.activeElement);
});

// The button that had the focus may be gone with what was replaced.
document.addEventListener("htmx:afterSettle", () => {
  if (wasInside && document.activeElement === document.body) document.getElementById("outside-said")?.focus();
  wasInside = false;
});

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
  if (wrong.length) wrong[0].focus();
});
