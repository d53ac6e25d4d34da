// <walked-cells>: a table whose cells are walked by arrow keys, as one tab stop; "?" opens the reason for a row.
"use strict";

const WIDGETS = "a[href], button, input, summary";

customElements.define("walked-cells", class extends HTMLElement {
  connectedCallback() {
    this.rows = [...this.querySelectorAll("tbody tr")].map((row) =>
      [...row.cells].map((cell) => {
        const widgets = [...cell.querySelectorAll(WIDGETS)];
        return widgets.length ? widgets : [cell];
      }));
    this.querySelector("table")?.setAttribute("role", "grid");
    this.querySelectorAll("tbody td").forEach((cell) => cell.setAttribute("role", "gridcell"));
    this.rows.flat(2).forEach((spot) => { spot.tabIndex = -1; });
    const first = this.rows[0]?.[0]?.[0];
    if (first) first.tabIndex = 0;
    this.addEventListener("keydown", (event) => this.walk(event));
    this.addEventListener("focusin", (event) => this.settle(event.target));
  }

  // The tab stop follows the focus.
  settle(spot) {
    if (!this.rows.flat(2).includes(spot)) return;
    this.querySelectorAll('tbody [tabindex="0"]').forEach((other) => { other.tabIndex = -1; });
    spot.tabIndex = 0;
  }

  walk(event) {
    if (event.altKey || event.metaKey || event.target.matches("input, textarea, select")) return;
    if (event.key === "?") {
      event.target.closest("tr")?.querySelector("a[data-why]")?.click();
      event.preventDefault();
      return;
    }
    const spot = this.next(event);
    if (!spot) return;
    event.preventDefault();
    spot.focus();
  }

  next(event) {
    const y = this.rows.findIndex((row) => row.flat().includes(event.target));
    if (y < 0) return null;
    const line = this.rows[y].flat();
    const x = line.indexOf(event.target);
    const column = this.rows[y].findIndex((cell) => cell.includes(event.target));
    const last = this.rows.length - 1;
    switch (event.key) {
      case "ArrowRight": return line[x + 1];
      case "ArrowLeft": return line[x - 1];
      case "ArrowDown": return this.rows[Math.min(y + 1, last)][column]?.[0];
      case "ArrowUp": return this.rows[Math.max(y - 1, 0)][column]?.[0];
      case "Home": return event.ctrlKey ? this.rows[0][0][0] : line[0];
      case "End": return event.ctrlKey ? this.rows[last].flat().at(-1) : line.at(-1);
      default: return null;
    }
  }
});

// <moment-slider>: a range over the moments of a list, the newest last and now behind it; it fills the form's moment.

customElements.define("moment-slider", class extends HTMLElement {
  connectedCallback() {
    this.links = [...this.querySelectorAll("a[data-moment]")].reverse();
    this.picker = document.querySelector("form.filters [name=asOf]");
    if (!this.links.length || !this.picker || this.range) return;
    const marks = document.createElement("datalist");
    marks.id = "moment-marks";
    this.links.forEach((_, place) => marks.append(new Option("", place)));
    this.range = Object.assign(document.createElement("input"), { type: "range", min: 0, max: this.links.length, step: 1 });
    this.range.setAttribute("list", marks.id);
    this.range.setAttribute("aria-label", "Access as of a change");
    this.words = document.createElement("output");
    this.prepend(this.range, marks, this.words);
    this.range.value = this.place();
    this.tell();
    this.range.addEventListener("input", () => this.tell());
    this.range.addEventListener("change", () => this.choose(this.links[this.range.value]));
    this.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-moment]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.range.value = this.links.indexOf(link);
      this.tell();
      this.choose(link);
    });
  }

  // The last change that was before the form's moment.
  place() {
    if (!this.picker.value) return this.links.length;
    return Math.max(0, this.links.filter((link) => Date.parse(link.dataset.moment) <= Date.parse(this.picker.value)).length - 1);
  }

  tell() {
    const link = this.links[this.range.value];
    this.words.textContent = link ? link.closest("li").querySelector("time, .says").textContent : "now";
    this.range.setAttribute("aria-valuetext", this.words.textContent);
  }

  choose(link) {
    this.picker.value = link ? link.dataset.moment : "";
    this.picker.dispatchEvent(new Event("change", { bubbles: true }));
  }
});
