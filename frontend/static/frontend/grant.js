// Opens the form of a grant in a drawer, by its button or the key g; what the form needs is loaded by then.
"use strict";

class GrantDrawer extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (event.target.closest("[data-closes]")) this.dialog.close();
      if (!link || link.parentElement !== this || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.open(link);
    });
    this.addEventListener("htmx:afterSettle", (event) => {
      if (event.target === this.dialog && !this.dialog.open) this.dialog.showModal();
    });
  }

  get dialog() { return this.querySelector("dialog"); }

  // A form that was opened before is shown as it was left.
  async open(link) {
    if (this.dialog.querySelector("form")) return this.dialog.showModal();
    try {
      await Promise.all([import(this.dataset.script), this.style()]);
      htmx.trigger(link, "open");
    } catch {
      location.assign(link.href); // the same form as a page
    }
  }

  style() {
    const href = this.dataset.sheet;
    if (document.querySelector(`link[href="${href}"]`)) return null;
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
    document.head.append(sheet);
    return new Promise((resolve, reject) => { sheet.onload = resolve; sheet.onerror = reject; });
  }
}

customElements.define("grant-drawer", GrantDrawer);

document.addEventListener("keydown", (event) => {
  if (event.key !== "g" || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]") || document.querySelector("dialog[open]")) return;
  const link = document.querySelector("grant-drawer > a");
  if (!link) return;
  event.preventDefault();
  link.click();
});
