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
