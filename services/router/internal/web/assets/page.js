// What the pages do beyond links and forms: results as one types, keys, ranges of lines, copying.
// Every page works without it.
"use strict";

const box = document.getElementById("q");
const typing = (e) => e.matches("input, textarea, select, [contenteditable]");

// --- Results as one types. ---

const pause = 150; // milliseconds without a key
const patience = 4000; // milliseconds, after which an answer is not waited for

// live asks for the part of a page that a form leads to, whenever its input changes, and shows it.
function live(form, input, part, extra) {
  let timer, request;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, pause);
  });
  form.addEventListener("submit", () => {
    clearTimeout(timer);
    request?.abort();
  });
  async function ask() {
    request?.abort();
    const own = (request = new AbortController());
    const late = setTimeout(() => own.abort(), patience);
    const shown = new URL("?" + new URLSearchParams({ [input.name]: input.value }), form.action).href;
    const old = document.querySelector(part);
    old.classList.add("waiting");
    try {
      const answer = await fetch(shown + extra, { signal: own.signal, headers: { Accept: "text/html" } });
      if (answer.redirected) {
        location.assign(shown); // the token is not good any more
        return;
      }
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (own.signal.aborted) return;
      const content = fresh.querySelector(part) ?? fresh.body;
      old.replaceChildren(...content.childNodes);
      history.replaceState(null, "", shown);
      reveal();
    } catch (e) {
      if (e.name !== "AbortError") throw e;
    } finally {
      clearTimeout(late);
      if (own === request) old.classList.remove("waiting");
    }
  }
}

// On the pages of a repo, the box begins a search, and what is open stays until Enter.
if (location.pathname === "/") live(box.form, box, "#main", "&part=1&live=1");
const finder = document.querySelector("form[data-live]");
if (finder) live(finder, finder.querySelector("input"), "#entries", "&part=1");

// --- Completions of the search box, and earlier searches, which only this browser knows. ---

const list = document.createElement("ul");
const offered = { chosen: -1, after: "", request: null, timer: 0 };

const searches = {
  key: "trawl-searches", most: 50,
  read() {
    try { return JSON.parse(localStorage.getItem(this.key) ?? "[]").filter((q) => typeof q === "string"); } catch { return []; }
  },
  write(all) {
    try { if (all.length) localStorage.setItem(this.key, JSON.stringify(all)); else localStorage.removeItem(this.key); } catch { /* the browser keeps nothing */ }
  },
  add(query) {
    if (query.trim()) this.write([query, ...this.read().filter((q) => q !== query)].slice(0, this.most));
  },
};

function option(text, shown, note) {
  const item = document.createElement("li"), name = document.createElement("bdi"), about = document.createElement("span");
  item.setAttribute("role", "option");
  item.setAttribute("aria-selected", "false");
  item.dataset.text = text;
  name.textContent = shown;
  about.className = "note";
  about.textContent = note;
  item.append(name, " ", about);
  return item;
}

function showOffers(items, after) {
  items.forEach((item, i) => (item.id = "offer" + i));
  list.replaceChildren(...items);
  list.hidden = !items.length;
  Object.assign(offered, { chosen: -1, after });
  box.setAttribute("aria-expanded", String(!list.hidden));
  box.removeAttribute("aria-activedescendant");
}

function hideOffers() {
  clearTimeout(offered.timer);
  offered.request?.abort();
  if (!list.hidden) showOffers([], "");
}

function chooseOffer(by) {
  const n = list.children.length;
  list.children[offered.chosen]?.setAttribute("aria-selected", "false");
  // One place more than there are offers: the box itself.
  offered.chosen = ((offered.chosen + 1 + by + n + 1) % (n + 1)) - 1;
  const item = list.children[offered.chosen];
  item?.setAttribute("aria-selected", "true");
  item?.scrollIntoView({ block: "nearest" });
  if (item) box.setAttribute("aria-activedescendant", item.id);
  else box.removeAttribute("aria-activedescendant");
}

function takeOffer(item) {
  const { text, forget } = item.dataset, after = offered.after;
  hideOffers();
  if (forget !== undefined) { searches.write([]); return; }
  box.value = text + after;
  box.focus();
  box.setSelectionRange(text.length, text.length);
  box.dispatchEvent(new Event("input", { bubbles: true }));
}

async function complete() {
  const at = box.selectionStart, before = box.value.slice(0, at), after = box.value.slice(at);
  offered.request?.abort();
  if (at !== box.selectionEnd || !/\S$/.test(before) || /^\S/.test(after)) return hideOffers();
  const own = (offered.request = new AbortController());
  try {
    const answer = await fetch("/complete?" + new URLSearchParams({ q: before, part: "1" }), { signal: own.signal });
    if (!answer.ok || answer.redirected) return hideOffers();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!own.signal.aborted && document.activeElement === box) showOffers([...fresh.querySelectorAll("#offers > li")].filter((o) => o.dataset.text !== before), after);
  } catch (e) {
    if (e.name !== "AbortError") throw e;
  }
}

function showSearches() {
  const found = searches.read().filter((q) => q !== box.value && q.includes(box.value)).slice(0, 8).map((q) => option(q, q, ""));
  if (!found.length) return;
  const forget = option("", "Forget all earlier searches", "");
  forget.dataset.forget = "";
  showOffers([...found, forget], "");
  list.setAttribute("aria-label", "Earlier searches");
}

function completeBox() {
  Object.assign(list, { id: "offers", className: "offers", hidden: true });
  list.setAttribute("role", "listbox");
  box.after(list);
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", "offers"], ["aria-expanded", "false"]]) box.setAttribute(name, value);
  box.addEventListener("input", () => {
    hideOffers();
    list.setAttribute("aria-label", "Completions");
    offered.timer = setTimeout(complete, pause);
  });
  box.addEventListener("blur", hideOffers);
  box.addEventListener("keydown", (e) => {
    if (e.isComposing || e.ctrlKey || e.metaKey || e.altKey) return;
    const chosen = list.children[offered.chosen];
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      if (list.hidden) showSearches();
      if (list.hidden) return;
      chooseOffer(e.key === "ArrowDown" ? 1 : -1);
    } else if (e.key === "Enter" && chosen) takeOffer(chosen);
    else if (e.key === "Escape" && !list.hidden) hideOffers();
    else return;
    e.preventDefault();
  });
  list.addEventListener("mousedown", (e) => e.preventDefault()); // the box keeps the focus
  list.addEventListener("click", (e) => { const item = e.target.closest("li"); if (item) takeOffer(item); });
  box.form.addEventListener("submit", () => { searches.add(box.value); hideOffers(); });
  // Results that came as one typed have been of use when one of them is opened.
  document.getElementById("main").addEventListener("click", (e) => { if (location.pathname === "/" && e.target.closest("a")) searches.add(box.value); });
  if (location.pathname === "/login") searches.write([]); // the next user did not search for these
}
if (box.form) completeBox();

// --- Keys. ---

let position = -1;

function move(by) {
  const items = [...document.querySelectorAll("[data-item]")];
  if (!items.length) return;
  const focused = items.indexOf(document.activeElement);
  position = Math.min(Math.max((focused >= 0 ? focused : position) + by, 0), items.length - 1);
  items[position].focus();
  items[position].scrollIntoView({ block: "nearest" });
}

// places goes to the definitions or references of the name that was clicked, or is selected.
function places(of) {
  const selected = getSelection().toString().trim();
  if (/^\w+$/.test(selected)) location.assign(placesURL[of](getSelection().getRangeAt(0)));
  else if (menu) location.assign(menu.children[of === "definitions" ? 0 : 1].href);
}

// say shows the answer to a key that leads nowhere.
const said = Object.assign(document.createElement("p"), { className: "said", hidden: true });
said.setAttribute("role", "status");
document.body.append(said);
function say(text) {
  said.textContent = text;
  said.hidden = false;
  clearTimeout(said.timer);
  said.timer = setTimeout(() => (said.hidden = true), 3000);
}

const keys = {
  d: () => places("definitions"),
  r: () => places("references"),
  "/": () => { box.focus(); box.select(); },
  "?": () => location.assign("/help"),
  j: () => move(1),
  k: () => move(-1),
  n: () => step(1),
  p: () => step(-1),
  b: () => {
    const l = document.querySelector("[data-blame]");
    if (l) l.click();
    else say("No blame is known for what is open.");
  },
  y: () => {
    const l = document.querySelector("[data-permalink]"), to = l && l.href + location.hash;
    if (!l) say("What is open has no permanent address.");
    else if (to === location.href) say("This is the permanent address.");
    else location.assign(to);
  },
  t: () => {
    const here = document.getElementById("find"), away = document.querySelector("[data-finder]");
    if (here) here.focus();
    else if (away) location.assign(away.href + "#find");
    else { box.value = "type:file " + box.value; box.focus(); }
  },
};

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
  if (typing(e.target)) {
    if (e.key === "Escape" && !e.defaultPrevented) { e.target.blur(); position = -1; }
    return;
  }
  if (e.key === "Escape") offer(null);
  if (Object.hasOwn(keys, e.key)) {
    e.preventDefault();
    keys[e.key]();
  }
});

// --- Lines of a file. ---

const lineRange = /^#L(\d+)(?:-L?(\d+))?$/;

// choose shows the lines that the address names.
function choose(scroll) {
  document.querySelectorAll(".chosen").forEach((l) => l.classList.remove("chosen"));
  const found = lineRange.exec(location.hash);
  if (!found) return;
  const first = Math.min(+found[1], +(found[2] ?? found[1])), last = Math.max(+found[1], +(found[2] ?? found[1]));
  let line = document.getElementById("L" + first);
  if (scroll) line?.scrollIntoView({ block: "center" });
  for (let n = first; line && n <= last; line = document.getElementById("L" + ++n)) line.classList.add("chosen");
}

document.querySelector(".whole")?.addEventListener("click", (e) => {
  const number = e.target.closest(".n"), before = lineRange.exec(location.hash);
  if (!number || !e.shiftKey || !before) return;
  e.preventDefault();
  const ends = [+before[1], +number.textContent].sort((a, b) => a - b);
  history.replaceState(null, "", `#L${ends[0]}-L${ends[1]}`);
  choose(false);
});
addEventListener("hashchange", () => { elsewhere(); choose(lineRange.exec(location.hash)?.[2]); });

// elsewhere opens the part of a long file with the line that the address names.
function elsewhere() {
  const found = lineRange.exec(location.hash), shown = document.querySelectorAll(".whole > .l");
  if (!found || !shown.length || document.getElementById("L" + found[1])) return;
  const line = +found[1], before = line < +shown[0].id.slice(1), url = new URL(location.href);
  if (!document.querySelector(before ? "[data-part='-1']" : "[data-part='1']")) return;
  url.searchParams.set("from", Math.max(line - 100, 1));
  location.replace(url);
}

// step goes to the next match in a file, or the one before.
function step(by) {
  const all = [...document.querySelectorAll(".whole mark")].filter((m) => m.previousSibling?.nodeName !== "MARK");
  let at = all.findIndex((m) => m.classList.contains("current"));
  if (at < 0) { // from the chosen line on
    const line = document.querySelector(".chosen"), after = line ? all.findIndex((m) => line.compareDocumentPosition(m) & (Node.DOCUMENT_POSITION_FOLLOWING | Node.DOCUMENT_POSITION_CONTAINED_BY)) : 0;
    at = (after < 0 ? all.length : after) - (by > 0 ? 1 : 0);
  }
  const next = all[at + by];
  if (!next) { document.querySelector(`[data-match="${by}"]`)?.click(); return; }
  all[at]?.classList.remove("current");
  next.classList.add("current");
  next.scrollIntoView({ block: "center" });
}

// Links to the host lead to the line that the address names.
document.addEventListener("click", (e) => {
  const link = e.target.closest?.("[data-host]"), line = lineRange.exec(location.hash)?.[1];
  if (!link) return;
  link.dataset.plain ??= link.href;
  link.href = line ? link.dataset.host.replaceAll("{line}", line) : link.dataset.plain;
}, true);

// --- Names in a file. ---

const placesURL = {
  definitions: (range) => "/def?" + new URLSearchParams({ name: `${range}`.trim(), at: location.pathname, ...placeOf(range) }),
  references: (range) => "/?" + new URLSearchParams({ q: `ref:\\b${`${range}`.trim()}\\b case:yes` }),
};
let menu;

// placeOf is the line of a range, and the column in bytes.
function placeOf(range) {
  const line = range.startContainer.parentElement?.closest(".whole > .l"), code = line?.querySelector(".n");
  if (!line) return {};
  const before = document.createRange();
  before.setStartAfter(code);
  before.setEnd(range.startContainer, range.startOffset);
  return { line: line.id.slice(1), column: new TextEncoder().encode(`${before}`).length + 1 };
}

// nameAt is the name at a place of the window, with its range.
function nameAt(x, y) {
  const at = document.caretPositionFromPoint?.(x, y), old = at ? null : document.caretRangeFromPoint?.(x, y);
  const node = at?.offsetNode ?? old?.startContainer, offset = at?.offset ?? old?.startOffset;
  if (node?.nodeType !== Node.TEXT_NODE) return null;
  const before = /\w*$/.exec(node.data.slice(0, offset))[0], after = /^\w*/.exec(node.data.slice(offset))[0];
  if (!/^[A-Za-z_]/.test(before + after)) return null;
  const range = document.createRange();
  range.setStart(node, offset - before.length);
  range.setEnd(node, offset + after.length);
  const box = range.getBoundingClientRect();
  return x >= box.left && x <= box.right && y >= box.top && y <= box.bottom ? range : null;
}

// offer shows the ways from a name to its places, below it. Null hides them.
function offer(range) {
  menu?.remove();
  menu = null;
  if (!range) return;
  menu = document.createElement("nav");
  menu.className = "places";
  menu.setAttribute("aria-label", "Places of " + range);
  for (const [of, key] of [["definitions", "d"], ["references", "r"]]) {
    const link = document.createElement("a"), hint = document.createElement("kbd");
    link.href = placesURL[of](range);
    hint.textContent = key;
    link.append(of[0].toUpperCase() + of.slice(1) + " ", hint);
    menu.append(link);
  }
  const box = range.getBoundingClientRect();
  menu.style.left = box.left + scrollX + "px";
  menu.style.top = box.bottom + scrollY + "px";
  document.body.append(menu);
}

document.addEventListener("click", (e) => {
  if (menu?.contains(e.target)) return;
  offer(e.target.closest?.(".whole") && !e.target.closest("a") && getSelection().isCollapsed ? nameAt(e.clientX, e.clientY) : null);
});

// --- More matches of a file, in its place. ---

document.addEventListener("click", async (e) => {
  const link = e.target.closest?.("[data-more]");
  if (!link || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  const old = link.closest(".result"), url = new URL(link.href);
  url.searchParams.set("part", "1");
  old.classList.add("waiting");
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(patience), headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".result");
    if (answer.redirected || !fresh) location.assign(link.href);
    else old.replaceWith(fresh);
  } catch { location.assign(link.href); }
});

// --- The rest. ---

// reveal shows the buttons that need this script.
function reveal() {
  if (!navigator.clipboard) return; // none where the connection is not encrypted
  document.querySelectorAll("[data-copy]").forEach((b) => (b.hidden = false));
}

document.addEventListener("click", async (e) => {
  const button = e.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy path"), 1500);
});

if (matchMedia("(max-width: 52rem)").matches) document.querySelectorAll("aside details").forEach((d) => (d.open = false));
reveal();
elsewhere();
choose(true);
if (location.hash === "#find") document.getElementById("find")?.focus();
