// Custom elements. Without scripts each shows the server's text.
"use strict";

// <local-time>: a datetime in the reader's local time.
const inLocalTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const withSeconds = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

customElements.define("local-time", class extends HTMLElement {
  connectedCallback() {
    const time = this.querySelector("time");
    const at = new Date(time?.dateTime ?? "");
    if (Number.isNaN(at.getTime())) return;
    const shows = /\d:\d\d:\d\d/.test(time.textContent) ? withSeconds : inLocalTime;
    time.textContent = shows.format(at);
  }
});

// <local-moment>: a datetime picker in local time, with the time zone next to it; sent in UTC, which is its tooltip.
customElements.define("local-moment", class extends HTMLElement {
  connectedCallback() {
    this.picker = this.querySelector("input");
    if (!this.picker.name) return;
    this.append(Object.assign(document.createElement("input"), { type: "hidden", name: this.picker.name }));
    this.picker.removeAttribute("name");
    this.querySelector(".zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
    this.value = this.picker.value && `${this.picker.value}Z`;
    this.picker.addEventListener("input", () => this.send(this.picker.value && new Date(this.picker.value).toISOString()), true);
  }

  // The moment in ISO 8601, "" for none.
  get value() { return this.lastElementChild.value; }

  set value(moment) {
    const at = new Date(moment);
    this.picker.value = moment && new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
    this.send(moment);
  }

  send(moment) {
    this.lastElementChild.value = moment;
    this.picker.title = moment && new Date(moment).toUTCString().replace("GMT", "UTC");
  }
});

// <toast-note>: can be closed; one without a button closes by itself, but not while it has focus or the pointer.
customElements.define("toast-note", class extends HTMLElement {
  connectedCallback() {
    if (this.querySelector(".close")) return;
    if (!this.querySelector("form, a, button")) this.leaveLater();
    const close = { type: "button", className: "close square", textContent: "×", ariaLabel: "Close this message" };
    this.append(Object.assign(document.createElement("button"), close, { onclick: () => this.remove() }));
  }

  leaveLater() {
    setTimeout(() => {
      if (this.matches(":hover, :focus-within")) this.leaveLater();
      else this.remove();
    }, 8000);
  }
});
