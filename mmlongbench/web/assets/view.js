// What all pages of the viewer share: loading of data, keys, help. Data comes from a server as JSON or, on pages that are
// opened from disk, from script files that put it into `viewData`, because browsers do not let such pages read files.
"use strict";
window.viewData ??= {};
const View = (() => {
  const about = document.body.dataset, waiting = new Map();
  const isStatic = about.mode === "static";

  function load(key) {
    if (!waiting.has(key)) {
      const found = isStatic ? loadScript(key) : fetch(`data/${key}.json`).then(answer => {
        if (!answer.ok) return answer.text().then(text => { throw new Error(text || answer.status); });
        return answer.json();
      });
      waiting.set(key, found);
      found.catch(() => waiting.delete(key));
    }
    return waiting.get(key);
  }

  function forget(key) { waiting.delete(key); }

  function loadScript(key) {
    return new Promise((done, fail) => {
      if (key in window.viewData) return done(window.viewData[key]);
      const script = document.createElement("script");
      script.src = `data/${key}.js`;
      script.onload = () => { done(window.viewData[key]); delete window.viewData[key]; script.remove(); };
      script.onerror = () => fail(new Error("this needs mmlongbench view: " + key));
      document.head.append(script);
    });
  }

  // an element with a class, attributes and children; texts become text nodes, so nothing of data is markup
  function el(name, classes, ...children) {
    const made = document.createElement(name);
    if (classes) made.className = classes;
    made.append(...children.filter(each => each !== null && each !== undefined && each !== ""));
    return made;
  }

  const number = value => value.toLocaleString("en-US");
  // the address of an image, `small` or `large`, by its number in the file of the example
  const picture = (size, image) => `images/${size}-${about.file}-${image}.jpg`;
  const said = document.getElementById("said");
  function say(text) { said.textContent = text; }

  // the state of a page is in the hash of its address, so that a link that is sent shows the same
  const hash = values => {
    const kept = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined));
    return String(kept) && `#${kept}`;
  };
  const given = name => new URLSearchParams(location.hash.slice(1)).get(name);
  function keep(values) {
    const to = hash(values);
    if (to !== location.hash) history.replaceState(null, "", to || location.href.split("#")[0]);
  }

  const keys = {};
  const fields = "input, select, textarea";
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest?.(fields);
    if (event.key === "Escape") {
      if (field) { event.preventDefault(); field.blur(); keys.Escape?.(); }  // a browser would empty a search field
      return;
    }
    if (field || document.querySelector("dialog[open]")) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(event); }
  });

  const help = document.getElementById("help");
  const showHelp = () => help.showModal();
  keys["?"] = showHelp;
  document.getElementById("help-button").addEventListener("click", showHelp);
  help.querySelector(".close").addEventListener("click", () => help.close());

  // j and k go through rows that have a link of class `go`
  function rowKeys(rows) {
    const step = by => {
      const links = rows(), at = links.indexOf(document.activeElement);
      const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by))];
      next?.focus();
      next?.scrollIntoView({block: "nearest"});
    };
    keys.j = () => step(1);
    keys.k = () => step(-1);
  }
  const rows = () => [...document.querySelectorAll("table.cells a.go, .curves a.go")].filter(each => each.checkVisibility());
  if (document.querySelector("table.cells, .curves")) rowKeys(rows);

  return {about, isStatic, picture, load, forget, hash, given, keep, el, number, say, keys, rowKeys};
})();
