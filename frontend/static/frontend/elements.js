// Elements of our own. Without scripts each shows what the server wrote.
"use strict";

// <local-time>: the moment in the reader's own time; UTC stays the tooltip.
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

// <toast-note>: can be closed; one without a button leaves by itself, but not while somebody is reading it.
customElements.define("toast-note", class extends HTMLElement {
  connectedCallback() {
    if (this.querySelector(".close")) return;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "close square";
    close.textContent = "×";
    close.setAttribute("aria-label", "Close this message");
    close.addEventListener("click", () => this.remove());
    const stays = this.querySelector("form, a, button");
    this.append(close);
    if (!stays) this.leaveLater();
  }

  leaveLater() {
    setTimeout(() => {
      if (this.matches(":hover, :focus-within")) this.leaveLater();
      else this.remove();
    }, 8000);
  }
});
