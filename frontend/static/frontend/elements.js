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

// <meta-tree>: the tree of objects, with the keys of the ARIA practices. Without it the items are plain links.
const TYPING_MS = 700; // within which letters belong to one word
const ITEM = "[role=treeitem]";

const itemOf = (event) => event.target.closest(ITEM);
const isOpen = (item) => item.ariaExpanded === "true";
const belowOf = (item) => document.getElementById(item.getAttribute("aria-owns"));
const aboveOf = (item) => document.querySelector(`[aria-owns="${item.closest("ul").id}"]`);

class MetaTree extends HTMLElement {
  connectedCallback() {
    this.tree = this.querySelector("[role=tree]");
    if (!this.tree) return;
    this.addEventListener("click", this.onClick, true); // before htmx, which listens on the links
    this.addEventListener("keydown", this.onKey);
    this.addEventListener("focusin", (event) => this.stopAt(itemOf(event)));
    this.addEventListener("htmx:beforeSwap", this.beforeMore);
    document.addEventListener("htmx:afterSettle", (event) => {
      if (this.more) this.afterMore();
      if (event.target.id === "main") this.reveal();
    });
    const drawer = this.closest("[popover]");
    drawer?.addEventListener("beforetoggle", ({ newState }) => {
      for (const other of document.querySelectorAll(".skip, .top, .content")) other.inert = newState === "open";
    });
    drawer?.addEventListener("toggle", ({ newState }) => {
      if (newState === "open") this.current?.focus();
    });
    this.prepare();
    this.reveal();
  }

  // Roving tabindex: one item is a tab stop, the one that had the focus last.
  stopAt(item) {
    if (!item || item === this.current) return;
    if (this.current) this.current.tabIndex = -1;
    this.current = item;
    item.tabIndex = 0;
  }

  prepare() {
    for (const item of this.tree.querySelectorAll(`${ITEM}:not([tabindex])`)) item.tabIndex = -1;
    if (!this.current?.isConnected) this.stopAt(this.tree.querySelector(ITEM));
  }

  show(item, open) {
    item.ariaExpanded = open;
    belowOf(item).hidden = !open;
  }

  async open(item) {
    const below = belowOf(item);
    this.show(item, true);
    if (!below.querySelector("a")) await this.load(item.dataset.below, below, below, "innerHTML");
  }

  // Each level is loaded once at a time, by its own element: htmx queues requests of one element.
  load(path, level, target, swap) {
    level.ariaBusy = "true";
    return level.loading ??= htmx.ajax("GET", path, { source: level, target, swap }).finally(() => {
      level.loading = level.ariaBusy = null;
      this.prepare();
    });
  }

  async toggle(item) {
    if (isOpen(item)) return this.show(item, false);
    await this.open(item);
    announce(`${belowOf(item).querySelectorAll(":scope > li > a[data-name]").length} in ${item.dataset.name}`);
  }

  // One level at a time, to limit concurrent requests.
  async openAll(level) {
    for (const item of level.querySelectorAll(":scope > li > [aria-expanded=false]")) await this.open(item);
    announce("All of this level are open");
  }

  onClick(event) {
    const item = itemOf(event);
    if (!item) return;
    if (event.target.closest(".toggle") && item.ariaExpanded) {
      event.preventDefault();
      event.stopPropagation();
      this.toggle(item);
    } else if (item.dataset.name && this.closest(":popover-open")) {
      this.closest("[popover]").hidePopover();
      document.getElementById("main").focus();
    } else if (item.dataset.name) {
      this.opened = item; // the page's keys are meant for it
    }
  }

  onKey(event) {
    const item = itemOf(event), isLetter = event.key.length === 1;
    if (!item || hasModifier(event) || "/?".includes(event.key) || event.shiftKey && !isLetter) return;
    const act = MetaTree.keys[event.key] ?? (isLetter && this.typeAhead);
    if (!act) return;
    if (isLetter && item === this.opened && document.querySelector(`#main [aria-keyshortcuts="${CSS.escape(event.key)}"]`)) return;
    this.opened = null;
    act.call(this, item, event.key);
    event.preventDefault();
    event.stopPropagation(); // keys of the page do something else
  }

  static keys = {
    ArrowDown(item) { this.step(item, 1); },
    ArrowUp(item) { this.step(item, -1); },
    Home() { this.items()[0].focus(); },
    End() { this.items().at(-1).focus(); },
    ArrowRight(item) {
      if (isOpen(item)) belowOf(item).querySelector(ITEM)?.focus();
      else if (item.ariaExpanded) this.toggle(item);
    },
    ArrowLeft(item) {
      if (isOpen(item)) this.show(item, false);
      else aboveOf(item)?.focus();
    },
    "*"(item) { this.openAll(item.closest("ul")); },
    " "(item) { item.click(); },
  };

  items() {
    return [...this.tree.querySelectorAll(ITEM)].filter((item) => !item.closest("[hidden]"));
  }

  step(item, by) {
    const all = this.items();
    all[all.indexOf(item) + by]?.focus();
  }

  // Typeahead: the next item whose name begins with the typed text.
  typeAhead(item, letter) {
    const goesOn = Date.now() - this.typedAt < TYPING_MS;
    this.typed = (goesOn ? this.typed : "") + letter.toLowerCase();
    this.typedAt = Date.now();
    const all = this.items(), start = all.indexOf(item) + (goesOn ? 0 : 1);
    const order = [...all.slice(start), ...all.slice(0, start)];
    order.find((each) => each.dataset.name?.toLowerCase().startsWith(this.typed))?.focus();
  }

  // "Show more" is replaced by the next objects, the first of which takes its focus. What was fetched out of turn and
  // stands behind it comes again, or is fetched anew.
  beforeMore(event) {
    const more = event.detail.requestConfig.elt.closest("li.more");
    if (!more) return;
    while (more.nextElementSibling) more.nextElementSibling.remove();
    this.more = { last: more.previousElementSibling, hadFocus: more.contains(document.activeElement) };
  }

  afterMore() {
    const { last, hadFocus } = this.more;
    this.more = null;
    const level = [...last.parentElement.querySelectorAll(":scope > li > a[data-name]")];
    const added = level.length - 1 - level.indexOf(last.firstElementChild);
    this.prepare();
    if (hadFocus) last.nextElementSibling?.querySelector(ITEM)?.focus();
    announce(`${added} more`);
    this.reveal();
  }

  // Expands the path to the current object and marks it; without one, the only item of the first level.
  async reveal() {
    const shown = document.querySelector("#main [data-trail]");
    const first = this.tree.querySelectorAll(":scope > li > a[data-name]");
    const trail = shown ? shown.dataset.trail.split("-") : first.length === 1 ? [first[0].id.slice("item-".length)] : [];
    const run = (this.run = {});
    let level = this.tree, path = this.dataset.top;
    for (const id of trail) {
      const item = document.getElementById(`item-${id}`) ?? (await this.fetchOne(level, path, id));
      if (!item || this.run !== run) return;
      if (shown && id === trail.at(-1)) return this.choose(item);
      await this.open(item);
      if (this.run !== run) return;
      [level, path] = [belowOf(item), item.dataset.below];
    }
  }

  async fetchOne(level, path, id) {
    const more = level.querySelector(":scope > li.more");
    await this.load(`${path}?only=${id}`, level, more ?? level, more ? "afterend" : "beforeend");
    return document.getElementById(`item-${id}`);
  }

  choose(item) {
    const before = this.tree.querySelector("[aria-current]");
    if (before) Object.assign(before, { ariaCurrent: null, ariaSelected: "false" });
    Object.assign(item, { ariaCurrent: "page", ariaSelected: "true" });
    if (!this.contains(document.activeElement)) this.stopAt(item);
    item.scrollIntoView({ block: "nearest" });
  }
}

customElements.define("meta-tree", MetaTree);
