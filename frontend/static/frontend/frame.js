// Behaviour of every page: keyboard shortcuts, announcements, errors, and forms that survive a new sign-in.
"use strict";

const hasModifier = (event) => event.altKey || event.ctrlKey || event.metaKey;

// A key focuses an element of the page, except while typing or in a dialog.
function onPageKey(key, selector, act) {
  document.addEventListener("keydown", (event) => {
    if (event.key !== key || event.defaultPrevented || hasModifier(event) || event.target.closest("input, textarea, select")) return;
    const element = document.querySelector(selector);
    if (!element || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    act(element);
  });
}

onPageKey("/", ".top input[type=search]", (field) => field.focus());
onPageKey("?", "#keys", (dialog) => dialog.showModal());

// Ctrl-Enter presses the button that applies: of the form with the focus, else the only one of the page or dialog.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const place = event.target.form ?? document.querySelector("dialog[open]") ?? document.getElementById("main");
  const [button, ...others] = place?.querySelectorAll("button[name=act][value=apply]:enabled, button[data-applies]:enabled") ?? [];
  if (!button || others.length) return;
  event.preventDefault();
  button.click();
});

// The open tab is in view where a phone shows only some.
const showTab = () => document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
addEventListener("load", showTab);
document.addEventListener("htmx:afterSettle", (event) => event.target.id === "main" && showTab());

// The search box of the top bar: Ctrl-K and / go there, arrow keys walk the results, Enter opens the first.
const palette = document.querySelector(".palette");
const asks = palette?.querySelector("input[type=search]");

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  if (!asks || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  asks.focus();
  asks.select();
});

palette?.addEventListener("keydown", (event) => {
  const links = [...palette.querySelectorAll("#palette-results a")], place = links.indexOf(document.activeElement);
  if (event.key === "Escape") {
    document.activeElement.blur();
  } else if (event.key === "Enter" && document.activeElement === asks) {
    const isFresh = palette.querySelector("[data-q]")?.dataset.q === asks.value;
    if (!links.length || !isFresh) return; // the form is sent, and answered by a page
    event.preventDefault();
    links[0].click();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    (links[place + (event.key === "ArrowDown" ? 1 : -1)] ?? asks).focus();
  }
});

// What was done has the focus on the page that follows, unless a field there takes it.
addEventListener("load", () => {
  if (document.activeElement === document.body) document.querySelector("#toasts toast-note")?.focus();
});

// Links opened in a new window are left to the browser: htmx would load them into this page.
document.addEventListener("click", (event) => {
  if (event.target.closest("a[href]") && (hasModifier(event) || event.shiftKey)) event.stopPropagation();
}, true);

function announce(text) {
  const place = document.getElementById("announcements");
  place.textContent = "";
  setTimeout(() => { place.textContent = text; }, 50); // a change is read; the same text again would not be
}

document.addEventListener("announce", (event) => announce(event.detail.value));
document.addEventListener("htmx:pushedIntoHistory", () => setTimeout(() => announce(document.title), 0));

// Errors are shown above the page, or at the top of the dialog that caused them, which covers the page.
function placeOfTrouble(source) {
  const dialog = source?.closest?.("dialog[open]");
  if (!dialog) return document.getElementById("trouble");
  let place = dialog.querySelector(":scope > .trouble");
  if (!place) {
    place = document.createElement("div");
    place.className = "trouble";
    place.setAttribute("role", "alert");
    dialog.prepend(place);
  }
  return place;
}

function showTrouble(source, sentence) {
  const note = document.createElement("div");
  note.className = "note warn";
  const text = document.createElement("p");
  text.textContent = sentence;
  note.append(text, closer());
  placeOfTrouble(source).replaceChildren(note);
}

function closer() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "bare small close-trouble";
  button.textContent = "Close";
  return button;
}

document.addEventListener("click", (event) => {
  if (event.target.closest(".close-trouble")) event.target.closest(".trouble").replaceChildren();
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { detail } = event;
  if (detail.target?.id === "trouble") detail.target = placeOfTrouble(detail.requestConfig.elt);
  // A response of a proxy is a full page: it is never swapped into a part.
  if (detail.xhr.status >= 400 && /^\s*<(!doctype|html)/i.test(detail.serverResponse)) {
    detail.shouldSwap = false;
    showTrouble(detail.requestConfig.elt, `The server could not be reached through what lies before it (status ${detail.xhr.status}). Try again in a moment.`);
  }
});

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.requestConfig.verb !== "get") document.querySelectorAll(".trouble").forEach((place) => place.replaceChildren());
});

document.addEventListener("htmx:sendError", (event) => {
  showTrouble(event.detail.requestConfig.elt, "The server did not answer. Look whether the connection is there, and try again; what was typed is kept.");
});

// After another tab signed in again, the forms of this page have an old CSRF token.
document.addEventListener("renewed", (event) => {
  document.querySelectorAll("input[name=csrfmiddlewaretoken]").forEach((field) => { field.value = event.detail.value; });
});

// The secret of a revoked token is removed; others stay, whatever the list responds.
document.addEventListener("revoked", (event) => document.getElementById(event.detail.value)?.remove());

// A button with data-ahead sets the moment that it stands at, to so many seconds from now.
document.addEventListener("click", ({ target }) => {
  const preset = target.closest("[data-ahead]"), moment = preset?.closest("local-moment");
  if (!moment) return;
  moment.value = new Date(Date.now() + preset.dataset.ahead * 1000).toISOString();
  for (const name of ["input", "change"]) moment.picker.dispatchEvent(new Event(name, { bubbles: true }));
});

// A button with data-opens opens that dialog.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens)?.showModal();
});

// A button with data-copies copies the text of that element, a button.copy the field before it. Over plain HTTP there is
// no clipboard: the text is selected and copied by that.
document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-copies], button.copy");
  if (!button) return;
  const from = button.dataset.copies ? document.getElementById(button.dataset.copies) : button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(from.value ?? from.textContent);
  } catch {
    if (from.select) from.select();
    else getSelection().selectAllChildren(from);
    if (!document.execCommand("copy")) return;
  }
  button.textContent = "Copied";
});

// A file that is larger than its field takes (data-most, bytes) is refused before it is sent.
document.addEventListener("change", ({ target }) => {
  if (!target.dataset.most) return;
  const [size, most] = [target.files[0]?.size ?? 0, Number(target.dataset.most)];
  target.setCustomValidity(size > most ? `This file has ${(size / 2 ** 20).toFixed(1)} MB; up to ${most / 2 ** 20} are read.` : "");
  target.reportValidity();
});

// After htmx swaps: marks invalid fields, and keeps the focus on the page.
let wasInside = false;
document.addEventListener("htmx:beforeSwap", (event) => {
  wasInside = event.target.id === "outside" && event.target.contains(document.activeElement);
});

// The button that had the focus may have been replaced.
document.addEventListener("htmx:afterSettle", () => {
  if (wasInside && document.activeElement === document.body) document.getElementById("outside-said")?.focus();
  wasInside = false;
});

// The content has changed: scroll to its top.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "main") return;
  window.scrollTo({ top: 0 });
  const lost = !document.activeElement || document.activeElement === document.body;
  if (lost || !document.activeElement.checkVisibility()) event.target.focus({ preventScroll: true });
});

const CAME_BACK = "came-back";
window.addEventListener("popstate", () => sessionStorage.setItem(CAME_BACK, "yes")); // htmx then loads the page anew
if (sessionStorage.getItem(CAME_BACK)) {
  sessionStorage.removeItem(CAME_BACK);
  document.getElementById("main")?.focus({ preventScroll: true });
}

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
  for (const field of wrong) field.closest("details")?.setAttribute("open", "");
  if (wrong.length) wrong[0].focus();
});
