// Ctrl-K opens the command palette: search in a dialog, with arrow keys to navigate the results.
"use strict";

customElements.define("search-palette", class extends HTMLElement {
  connectedCallback() {
    this.addEventListener("keydown", (event) => this.walk(event));
    document.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      const dialog = this.querySelector("dialog");
      if (dialog.open) return dialog.close();
      if (document.querySelector("dialog[open]")) return;
      dialog.showModal();
      this.field.select();
    });
  }

  get field() { return this.querySelector("input"); }

  walk(event) {
    if (event.key === "Escape") this.querySelector("dialog").close(); // not the field alone
    const links = [...this.querySelectorAll("#palette-results a")];
    const place = links.indexOf(document.activeElement);
    if (event.key === "Enter" && document.activeElement === this.field && links.length) {
      event.preventDefault();
      links[0].click();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      (links[place + (event.key === "ArrowDown" ? 1 : -1)] ?? this.field).focus();
    }
  }
});
