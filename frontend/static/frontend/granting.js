// The form of a grant: its drawer, names as chips, and a preview that follows the form.
"use strict";

// <grant-drawer>: shows the form that its link loads, or the one left open.
customElements.define("grant-drawer", class extends HTMLElement {
  connectedCallback() {
    const dialog = this.querySelector("dialog");
    this.addEventListener("click", (event) => {
      if (event.target.closest("[data-closes]")) dialog.close();
      if (!event.target.closest("grant-drawer > a") || !dialog.querySelector("form")) return;
      event.preventDefault();
      event.stopPropagation();
      dialog.showModal();
    }, true); // before htmx, which listens on the link
    this.addEventListener("htmx:afterSettle", (event) => {
      if (event.target === dialog && !dialog.open) dialog.showModal();
    });
  }
});

onPageKey("g", "grant-drawer > a", (link) => link.click());

// Names that are typed or pasted become chips, each a ticked box.
class GrantPeople extends HTMLElement {
  connectedCallback() {
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.field.value.trim()) {
        event.preventDefault();
        this.add(this.field.value);
      } else if (event.key === "Backspace" && !this.field.value) {
        this.remove(this.querySelector(".chips li:last-child"));
      }
    });
    this.field.addEventListener("input", (event) => {
      if (/[,;]/.test(this.field.value) || !(event instanceof InputEvent) || event.inputType === "insertReplacementText") this.add(this.field.value);
    });
    this.field.addEventListener("paste", (event) => {
      const text = event.clipboardData.getData("text");
      if (!/[,;\n]/.test(text)) return;
      event.preventDefault();
      this.add(text);
    });
    this.querySelector(".chips").addEventListener("change", (event) => this.remove(event.target.closest("li")));
  }

  get field() { return this.querySelector("#grant-more"); }

  add(text) {
    const names = text.split(/[,;\r\n]+/).map((name) => name.trim()).filter(Boolean);
    this.field.value = "";
    if (names.length > 200) {
      const paste = this.querySelector("#grant-paste");
      paste.closest("details").open = true;
      paste.value = names.join("\n");
    } else {
      names.forEach((name) => this.querySelector(".chips").append(this.chip(name)));
    }
    this.tell();
  }

  chip(name) {
    const item = document.createElement("li");
    item.innerHTML = '<label class="chip"><input type="checkbox" name="principal" checked><span></span></label>';
    item.querySelector("input").value = name;
    item.querySelector("span").textContent = name.replace(/^(user|group):/, "");
    return item;
  }

  remove(item) {
    if (!item) return;
    item.remove();
    this.field.focus();
    this.tell();
  }

  tell() {
    for (const name of ["input", "change"]) this.closest("form").dispatchEvent(new Event(name, { bubbles: true }));
  }
}

customElements.define("grant-people", GrantPeople);

// The preview is stale until the next one arrives.
const BESIDE = ["csrfmiddlewaretoken", "token", "shown"];
const saidBy = (form) => [...new FormData(form)].filter(([name]) => !BESIDE.includes(name)).join("&");
let shown = "";
let hasMoved = false; // since the request that is under way was sent

function compare(form) {
  const isFresh = saidBy(form) === shown;
  if (!isFresh) hasMoved = true;
  const apply = form.querySelector("#grant-apply");
  if (apply) apply.disabled = !isFresh;
  form.querySelector("#grant-preview").setAttribute("aria-busy", String(!isFresh));
}

for (const name of ["input", "change"]) {
  document.addEventListener(name, (event) => {
    const form = event.target.closest("#grant-form");
    if (!form) return;
    if (event.target.name === "level" && event.target.value !== "chosen") {
      form.querySelectorAll("[data-levels]").forEach((box) => {
        box.checked = !box.disabled && box.dataset.levels.split(" ").includes(event.target.value);
      });
    }
    compare(form);
  });
}
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "grant-form") hasMoved = false;
});
document.addEventListener("htmx:afterSettle", (event) => {
  const form = document.getElementById("grant-form");
  if (!form || !event.target.closest("#grant-form, #grant-drawer")) return;
  if (!hasMoved) shown = saidBy(form);
  compare(form);
});
const whole = document.getElementById("grant-form");
if (whole) shown = saidBy(whole); // a page of its own is shown as it was sent

// <walked-cells>: a table navigated by arrow keys, as one tab stop (ARIA grid); "?" opens the reason for a row.
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
