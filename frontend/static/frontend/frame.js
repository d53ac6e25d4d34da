// What the frame does on every page: its keys, what is announced, what went wrong, and forms that outlive a new sign-in.
"use strict";

const hasModifier = (event) => event.altKey || event.ctrlKey || event.metaKey;

// A key leads to an element of the page, but where something is typed or a dialog is open.
function onPageKey(key, selector, act) {
  document.addEventListener("keydown", (event) => {
    if (event.key !== key || hasModifier(event) || event.target.closest("input, textarea, select")) return;
    const element = document.querySelector(selector);
    if (!element || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    act(element);
  });
}

onPageKey("/", ".top input[type=search]", (field) => field.focus());

// A link that is opened in a window of its own is the browser's: htmx would load it into this page.
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

// A refusal stands over the page, or at the top of the dialog that it is about, which hides the page.
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
  // An answer of something between the browser and the server is a whole page: it is never pasted into a part.
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

// Another tab signed in anew, and the forms of this page carry the key of before.
document.addEventListener("renewed", (event) => {
  document.querySelectorAll("input[name=csrfmiddlewaretoken]").forEach((field) => { field.value = event.detail.value; });
});

// The secret of a token that is revoked is of no more use; others stay, whatever the list beside them answers.
document.addEventListener("revoked", (event) => document.getElementById(event.detail.value)?.remove());

// A button with data-opens opens that dialog.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens)?.showModal();
});

// A button with data-copies copies the text of that element; where the browser does not let it, the text is selected.
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
