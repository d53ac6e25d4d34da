// The form of a grant: names as chips, local time, a preview that follows the form, and texts to copy.
"use strict";

// Names that are typed or pasted become chips; each chip is a ticked box, as it is without this script.
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
    const [item, label, box, shown] = ["li", "label", "input", "span"].map((tag) => document.createElement(tag));
    label.className = "chip";
    Object.assign(box, { type: "checkbox", name: "principal", value: name, checked: true });
    shown.textContent = name.replace(/^(user|group):/, "");
    label.append(box, shown);
    item.append(label);
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

// A moment is picked in local time and sent in UTC.
class GrantMoment extends HTMLElement {
  connectedCallback() {
    const picker = this.querySelector("input");
    if (!picker.name) return;
    const sent = Object.assign(document.createElement("input"), { type: "hidden", name: picker.name });
    picker.removeAttribute("name");
    if (picker.value) {
      const at = new Date(`${picker.value}Z`);
      sent.value = at.toISOString();
      picker.value = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
    }
    this.append(sent);
    const zone = this.closest(".field").querySelector("[data-zone]");
    if (zone) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
    picker.addEventListener("input", () => { sent.value = picker.value ? new Date(picker.value).toISOString() : ""; }, true);
  }
}

customElements.define("grant-people", GrantPeople);
customElements.define("grant-moment", GrantMoment);

// What is shown is no longer what the form says, until the next preview is there.
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

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (!button) return;
  const from = document.getElementById(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(from.value ?? from.textContent);
    button.textContent = "Copied";
  } catch {
    if (from.select) from.select();
    else getSelection().selectAllChildren(from);
  }
});
