// <walked-cells>: a table navigated by arrow keys, as one tab stop (ARIA grid); "?" opens the reason for a row.
"use strict";

const spotsOf = (cell) => {
  const widgets = [...cell.querySelectorAll("a[href], button, input, summary")];
  return widgets.length ? widgets : [cell];
};
const spotsIn = (row) => [...row.cells].flatMap(spotsOf);

customElements.define("walked-cells", class extends HTMLElement {
  connectedCallback() {
    this.rows = [...this.querySelectorAll("tbody tr")];
    this.querySelector("table")?.setAttribute("role", "grid");
    this.querySelectorAll("tbody td").forEach((cell) => cell.setAttribute("role", "gridcell"));
    this.rows.flatMap(spotsIn).forEach((spot, place) => { spot.tabIndex = place ? -1 : 0; });
    this.addEventListener("keydown", this.walk);
    this.addEventListener("focusin", this.settle);
  }

  // The tab stop follows the focus.
  settle({ target }) {
    if (!target.matches("tbody [tabindex]")) return;
    this.querySelectorAll('tbody [tabindex="0"]').forEach((other) => { other.tabIndex = -1; });
    target.tabIndex = 0;
  }

  walk(event) {
    const row = event.target.closest("tbody tr");
    if (!row || event.altKey || event.metaKey || event.target.matches("input, textarea, select")) return;
    const why = event.key === "?" && row.querySelector("a[data-why]");
    const next = this.next(event, row);
    if (!why && !next) return;
    event.preventDefault();
    if (why) why.click();
    else next.focus();
  }

  next({ target, key, ctrlKey }, row) {
    const line = spotsIn(row), x = line.indexOf(target), y = this.rows.indexOf(row), all = this.rows.flatMap(spotsIn);
    const beside = (other) => other && spotsOf(other.cells[target.closest("td, th").cellIndex])[0];
    switch (key) {
      case "ArrowRight": return line[x + 1];
      case "ArrowLeft": return line[x - 1];
      case "ArrowDown": return beside(this.rows[y + 1]);
      case "ArrowUp": return beside(this.rows[y - 1]);
      case "Home": return (ctrlKey ? all : line)[0];
      case "End": return (ctrlKey ? all : line).at(-1);
      default: return null;
    }
  }
});

// <moment-slider>: a range input over the listed moments, newest last, then now; it submits the picker's form.
customElements.define("moment-slider", class extends HTMLElement {
  connectedCallback() {
    queueMicrotask(() => this.begin()); // by then the list is there, in local time
  }

  begin() {
    this.links = [...document.querySelectorAll("#moments a[data-moment]")].reverse();
    this.picker = document.getElementById("id_asOf").closest("local-moment");
    this.range = this.querySelector("input");
    this.range.value = this.place();
    this.hidden = false;
    this.tell();
    this.range.addEventListener("input", () => this.tell());
    this.range.addEventListener("change", () => this.choose());
    document.getElementById("moments").addEventListener("click", (event) => {
      const link = event.target.closest("a[data-moment]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.range.value = this.links.indexOf(link);
      this.tell();
      this.choose();
    });
  }

  // The last change before the form's moment.
  place() {
    const at = Date.parse(this.picker.value);
    if (!at) return this.links.length;
    return Math.max(0, this.links.filter((link) => Date.parse(link.dataset.moment) <= at).length - 1);
  }

  tell() {
    const item = this.links[this.range.value]?.closest("li");
    const words = item ? ["time", ".says"].map((part) => item.querySelector(part).textContent).join(": ") : "Now";
    this.querySelector("output").textContent = words;
    this.range.ariaValueText = words;
  }

  choose() {
    this.picker.value = this.links[this.range.value]?.dataset.moment ?? "";
    this.picker.picker.form.requestSubmit();
  }
});
