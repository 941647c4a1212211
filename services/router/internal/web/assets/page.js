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
    const url = new URL(form.action, location.href);
    url.search = new URLSearchParams({ [input.name]: input.value });
    const shown = url.href;
    for (const [name, value] of Object.entries(extra)) url.searchParams.set(name, value);
    const old = document.querySelector(part);
    old.classList.add("waiting");
    try {
      const answer = await fetch(url, { signal: own.signal, headers: { Accept: "text/html" } });
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
if (location.pathname === "/") live(box.form, box, "#main", { part: "1", live: "1" });
const finder = document.querySelector("form[data-live]");
if (finder) live(finder, finder.querySelector("input"), "#entries", { part: "1" });

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
  if (/^\w+$/.test(selected)) location.assign(placesURL[of](selected));
  else if (menu) location.assign(menu.children[of === "definitions" ? 0 : 1].href);
}

const keys = {
  d: () => places("definitions"),
  r: () => places("references"),
  "/": () => { box.focus(); box.select(); },
  "?": () => location.assign("/help"),
  j: () => move(1),
  k: () => move(-1),
  y: () => { const l = document.querySelector("[data-permalink]"); if (l) location.assign(l.href + location.hash); },
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
    if (e.key === "Escape") { e.target.blur(); position = -1; }
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
addEventListener("hashchange", () => choose(lineRange.exec(location.hash)?.[2]));

// --- Names in a file. ---

const placesURL = {
  definitions: (name) => "/?" + new URLSearchParams({ q: `sym:^${name}$ case:yes` }),
  references: (name) => "/?" + new URLSearchParams({ q: `ref:\\b${name}\\b case:yes` }),
};
let menu;

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
    link.href = placesURL[of](range.toString());
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
choose(true);
if (location.hash === "#find") document.getElementById("find")?.focus();
