// What the server found wrong is marked at its field, and the first such field gets the focus.
"use strict";

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
