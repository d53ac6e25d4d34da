// <meta-tree>: the tree of objects, with the keys of the ARIA practices. Without it the items are plain links.
"use strict";

const TYPING_MS = 700; // within which letters belong to one word
const CAME_BACK = "came-back";

const belowOf = (item) => document.getElementById(item.getAttribute("aria-owns"));
const isOpen = (item) => item.getAttribute("aria-expanded") === "true";
const aboveOf = (item) => document.querySelector(`[aria-owns="${item.closest("ul").id}"]`);

class MetaTree extends HTMLElement {
  connectedCallback() {
    this.tree = this.querySelector("[role=tree]");
    if (!this.tree) return;
    this.typed = { text: "", at: 0 };
    this.addEventListener("click", this.onClick, true); // before htmx, which listens on the links
    this.addEventListener("keydown", this.onKey);
    this.addEventListener("focusin", (event) => this.stopAt(event.target.closest("[role=treeitem]")));
    this.addEventListener("htmx:beforeSwap", this.beforeMore);
    document.addEventListener("htmx:afterSettle", (event) => {
      this.afterMore();
      if (event.target.id === "main") this.reveal();
    });
    this.closest("[popover]")?.addEventListener("toggle", (event) => {
      if (event.newState === "open") this.current?.focus();
    });
    this.prepare();
    this.reveal();
  }

  items() {
    return [...this.tree.querySelectorAll("[role=treeitem]")].filter((item) => !item.closest("[hidden]"));
  }

  // One item is a stop of the Tab key: the one that had the focus last.
  stopAt(item) {
    if (!item || item === this.current) return;
    if (this.current) this.current.tabIndex = -1;
    this.current = item;
    item.tabIndex = 0;
  }

  prepare() {
    for (const item of this.tree.querySelectorAll("[role=treeitem]:not([tabindex])")) item.tabIndex = -1;
    if (!this.current?.isConnected) this.stopAt(this.tree.querySelector("[role=treeitem]"));
  }

  focusOn(item) {
    item?.focus();
  }

  async open(item) {
    const below = belowOf(item);
    item.setAttribute("aria-expanded", "true");
    below.hidden = false;
    if (!below.querySelector("a")) await this.load(item.dataset.below, below, below, "innerHTML");
  }

  close(item) {
    item.setAttribute("aria-expanded", "false");
    belowOf(item).hidden = true;
  }

  // A level is loaded once at a time, and for itself: htmx lets requests of one source wait for each other.
  load(path, level, target, swap) {
    level.loading ??= htmx.ajax("GET", path, { source: level, target, swap }).finally(() => {
      level.loading = null;
      level.removeAttribute("aria-busy");
      this.prepare();
    });
    level.setAttribute("aria-busy", "true");
    return level.loading;
  }

  async toggle(item) {
    if (isOpen(item)) return this.close(item);
    await this.open(item);
    const count = belowOf(item).querySelectorAll(":scope > li > a[data-name]").length;
    announce(`${count} in ${item.dataset.name}`);
  }

  onClick(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) return event.stopPropagation(); // a window of its own
    if (event.target.closest(".toggle") && item.hasAttribute("aria-expanded")) {
      event.preventDefault();
      event.stopPropagation();
      this.toggle(item);
    } else if (item.dataset.name && this.closest(":popover-open")) {
      this.closest("[popover]").hidePopover();
      document.getElementById("main").focus();
    }
  }

  onKey(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key.length === 1 && !" /?".includes(event.key)) {
      this.focusOn(this.typeAhead(item, event.key));
    } else {
      const act = MetaTree.keys[event.key];
      if (!act || event.shiftKey) return;
      act(this, item);
    }
    event.preventDefault();
    event.stopPropagation(); // keys of the page do something else
  }

  static keys = {
    ArrowDown: (tree, item) => tree.step(item, 1),
    ArrowUp: (tree, item) => tree.step(item, -1),
    Home: (tree) => tree.focusOn(tree.items()[0]),
    End: (tree) => tree.focusOn(tree.items().at(-1)),
    ArrowRight: (tree, item) => {
      if (isOpen(item)) tree.focusOn(belowOf(item).querySelector("[role=treeitem]"));
      else if (item.hasAttribute("aria-expanded")) tree.toggle(item);
    },
    ArrowLeft: (tree, item) => (isOpen(item) ? tree.close(item) : tree.focusOn(aboveOf(item))),
    " ": (tree, item) => item.click(),
  };

  step(item, by) {
    const all = this.items();
    this.focusOn(all[all.indexOf(item) + by]);
  }

  typeAhead(item, letter) {
    const now = Date.now();
    const text = (now - this.typed.at < TYPING_MS ? this.typed.text : "") + letter.toLowerCase();
    this.typed = { text, at: now };
    const all = this.items();
    const start = all.indexOf(item) + (text.length > 1 ? 0 : 1);
    const order = [...all.slice(start), ...all.slice(0, start)];
    return order.find((each) => each.dataset.name?.toLowerCase().startsWith(text));
  }

  // "Show more" is replaced by the next objects, the first of which takes its focus.
  beforeMore(event) {
    const more = event.detail.requestConfig.elt.closest("li.more");
    if (!more) return;
    const level = more.parentElement;
    const hadFocus = more.contains(document.activeElement);
    this.more = { level, hadFocus, place: [...level.children].indexOf(more), count: level.children.length - 1 };
  }

  afterMore() {
    if (!this.more) return;
    const { level, place, hadFocus, count } = this.more;
    this.more = null;
    const first = level.children[place];
    const added = level.children.length - count - (level.querySelector(":scope > li.more") ? 1 : 0);
    // One that was put behind "Show more", because it is shown, takes the place of its copy.
    for (const item of level.querySelectorAll(":scope > li > a[id]")) {
      const twins = level.querySelectorAll(`:scope > li > #${item.id}`);
      if (twins.length > 1) twins[0].parentElement.replaceWith(twins[1].parentElement);
    }
    this.prepare();
    if (hadFocus) this.focusOn((first?.isConnected ? first : level.children[place])?.querySelector("[role=treeitem]"));
    announce(`${added} more`);
  }

  // Opens the way to the object that is shown, and marks it.
  async reveal() {
    const shown = document.querySelector("#main [data-trail]");
    const trail = shown ? shown.dataset.trail.split("-") : this.onlyOne();
    const run = (this.run = {});
    let level = this.tree, path = this.dataset.top;
    for (const id of trail) {
      const item = document.getElementById(`item-${id}`) ?? (await this.fetchOne(level, path, id));
      if (!item || this.run !== run) return;
      if (shown && id === trail.at(-1)) return this.choose(item);
      await this.open(item);
      if (this.run !== run) return;
      level = belowOf(item);
      path = item.dataset.below;
    }
  }

  onlyOne() {
    const all = this.tree.querySelectorAll(":scope > li > a[data-name]");
    return all.length === 1 ? [all[0].id.replace("item-", "")] : [];
  }

  async fetchOne(level, path, id) {
    const more = level.querySelector(":scope > li.more");
    await this.load(`${path}?only=${id}`, level, more ?? level, more ? "afterend" : "beforeend");
    return document.getElementById(`item-${id}`);
  }

  choose(item) {
    for (const other of this.tree.querySelectorAll("[aria-current]")) {
      other.removeAttribute("aria-current");
      other.setAttribute("aria-selected", "false");
    }
    item.setAttribute("aria-current", "page");
    item.setAttribute("aria-selected", "true");
    if (!this.contains(document.activeElement)) this.stopAt(item);
    item.scrollIntoView({ block: "nearest" });
  }
}

customElements.define("meta-tree", MetaTree);

// "/" leads to the search, from anywhere but a field.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.altKey || event.ctrlKey || event.metaKey) return;
  const search = document.querySelector(".top input[type=search]");
  if (!search || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  search.focus();
});

// What is shown has changed: it begins at its top, and the focus never falls off the page.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "main") return;
  window.scrollTo({ top: 0 });
  const lost = !document.activeElement || document.activeElement === document.body;
  if (lost || !document.activeElement.checkVisibility()) event.target.focus({ preventScroll: true });
});
window.addEventListener("popstate", () => sessionStorage.setItem(CAME_BACK, "yes")); // htmx then loads the page anew
if (sessionStorage.getItem(CAME_BACK)) {
  sessionStorage.removeItem(CAME_BACK);
  document.getElementById("main")?.focus({ preventScroll: true });
}
