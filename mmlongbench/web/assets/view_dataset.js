// The table of a dataset: all its rows are loaded once, then filtered, sorted and paged here. The state is in the hash of
// the address, so that a link leads to the same rows.
"use strict";
{
  const {about, el, number, keys} = View;
  const size = Number(about.page), models = JSON.parse(about.models), files = JSON.parse(about.files);
  const loaded = Promise.all(files.map(file => View.load(`rows-${file}`))).then(parts => {
    const rows = parts.flat();
    for (const row of rows) row.text = [row.id, row.placement, row.question, row.answer, row.document, ...row.facets].join("\n").toLowerCase();
    return rows;
  });
  const find = id => document.getElementById(id);
  const table = find("examples"), body = table.tBodies[0], filter = find("filter"), length = find("length");
  const state = {q: "", length: "", sort: "", facet: "", placement: "", model: "", page: 1};
  const heads = [...table.querySelectorAll("[data-sort]")];
  let pages = 1, asked = 0;

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const key of ["q", "length", "sort", "facet", "placement", "model"]) state[key] = given.get(key) ?? "";
    state.page = Math.max(1, Number(given.get("page")) || 1);
    filter.value = state.q;
    length.value = state.length;
  }

  function write() {
    View.keep({...state, page: state.page === 1 ? "" : state.page});
  }

  async function show() {
    const turn = ++asked;
    let found;
    try {
      found = chosen(await loaded);
    } catch (error) {
      if (turn === asked) find("count").textContent = error.message;
      return;
    }
    if (turn !== asked) return;
    pages = found.pages;
    for (const [key, said] of [["facet", ""], ["placement", "placement "], ["model", "by "]]) {
      find(key).textContent = state[key] ? `${said}${state[key]} ×` : "";
      const undone = key === "model" ? "Sort by the scores of all models, not only of" : `Show all, not only ${key}`;
      find(key).setAttribute("aria-label", `${undone} ${state[key]}`);
    }
    state.page = found.page;
    body.replaceChildren(...found.rows.map(row));
    table.classList.toggle("no-placement", found.rows.every(each => !each.placement));
    find("count").textContent = `${number(found.total)} example${found.total === 1 ? "" : "s"}`;
    find("page").textContent = `${found.page} of ${number(found.pages)}`;
    find("before").disabled = found.page <= 1;
    find("after").disabled = found.page >= found.pages;
    for (const head of table.querySelectorAll("th")) head.removeAttribute("aria-sort");
    const column = state.sort.replace(/^-/, ""), direction = state.sort.startsWith("-") ? "descending" : "ascending";
    const same = heads.filter(each => each.dataset.sort === column);
    const head = same.find(each => same.length === 1 || isOf(each.dataset.model));
    sort.selectedIndex = [...sort.options].findIndex(each => each.value === column && (!each.dataset.model || isOf(each.dataset.model)));
    find("reverse").disabled = !column;
    find("reverse").textContent = direction;
    find("reverse").setAttribute("aria-label", `${direction}; reverse`);
    head?.closest("th").setAttribute("aria-sort", direction);
    const name = head?.textContent ?? (same.length ? "the mean score of all models" : "");
    find("order").textContent = name ? `sorted by ${name}, ${direction}` : "in the order of the files";
  }

  function chosen(all) {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const cut = state.facet.indexOf(": "), name = state.facet.slice(0, cut + 2), group = `, ${state.facet.slice(cut + 2)}, `;
    const inFacet = row => row.facets.some(each => each.startsWith(name) && `, ${each.slice(name.length)}, `.includes(group));
    let rows = all.filter(row => (!state.length || row.length === state.length) &&
      (!state.facet || inFacet(row)) && words.every(word => row.text.includes(word)));
    if (state.placement) {
      const wanted = Number(state.placement.replace(/^~/, "")), near = state.placement.startsWith("~") ? tenth : one => one;
      rows = rows.filter(row => row.placement && near(value(row, "placement")) === wanted);
    }
    const column = state.sort.replace(/^-/, "");
    const sign = state.sort.startsWith("-") ? -1 : 1;  // equal rows stay in the order of the files
    if (heads.some(each => each.dataset.sort === column)) rows.sort((one, other) => sign * order(value(one, column), value(other, column)));
    const count = Math.max(1, Math.ceil(rows.length / size)), page = Math.min(state.page, count);
    return {total: rows.length, page, pages: count, rows: rows.slice((page - 1) * size, page * size)};
  }

  // rounded to tenths as a report does it, a half to the even one
  function tenth(depth) {
    const low = Math.floor(10 * depth), rest = 10 * depth - low;
    return (low + (rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? 1 : 0)) / 10;
  }

  function value(row, column) {
    if (column === "score") {
      const at = models.indexOf(state.model);
      const scores = (at < 0 ? row.scores : [row.scores[at]]).filter(each => each !== null);
      return scores.length ? scores.reduce((sum, each) => sum + each, 0) / scores.length : -1;
    }
    if (column === "length") return Number.parseInt(row.length) * (row.length.endsWith("M") ? 1024 : 1);
    if (column === "placement") return row.placement ? Number(row.placement.split(" ").pop()) : -1;
    return row[column];
  }

  const collator = new Intl.Collator("en", {numeric: true});
  const order = (one, other) => typeof one === "number" ? one - other : collator.compare(one, other);

  function row(found) {
    const link = found.url ? el("a", "go", found.id) : el("span", "", found.id);
    if (found.url) link.href = found.url + View.hash({from: location.hash.slice(1)});
    const made = el("tr", "");
    const cell = (name, content, isText) => {
      const one = el("td", `${isText ? "t " : ""}c-${name}`, content);
      one.dataset.name = name;
      made.append(one);
    };
    made.append(el("th", "c-id", link));
    made.firstChild.scope = "row";
    cell("length", found.length);
    cell("placement", found.placement);
    cell("question", found.question, true);
    if (found.fault) made.lastChild.classList.add("bad");
    cell("answer", found.answer, true);
    cell("document", found.document, true);
    cell("facets", el("div", "few", found.facets.join("; ")), true);
    made.lastChild.title = found.facets.join("\n");
    cell("tokens", number(found.tokens));
    cell("fill", found.fill.toFixed(4));
    cell("images", number(found.images));
    models.forEach((model, at) => {
      const score = found.scores[at];
      cell("score", score === null || score === undefined ? "–" : (100 * score).toFixed(1));
      made.lastChild.dataset.name = model;
      if (score !== null && score < 0.5) made.lastChild.classList.add("wrong");
    });
    return made;
  }

  function change(changes) {
    Object.assign(state, {page: 1}, changes);
    write();
    show();
  }

  // with several models, scores are sorted by those of one of them
  const ofMany = model => models.length > 1 ? model ?? "" : "";
  const isOf = model => models.length < 2 || state.model === (model ?? "");
  const sort = find("sort");
  sort.addEventListener("change", () => change({sort: sort.value, model: ofMany(sort.selectedOptions[0].dataset.model)}));
  find("reverse").addEventListener("click", () => change({sort: state.sort.startsWith("-") ? state.sort.slice(1) : `-${state.sort}`}));

  filter.addEventListener("input", () => change({q: filter.value}));
  filter.addEventListener("keydown", event => {
    const links = event.key === "Enter" ? [...body.querySelectorAll("a.go")] : [];
    if (links.length === 1) links[0].click(); else links[0]?.focus();
  });
  length.addEventListener("change", () => change({length: length.value}));
  table.tHead.addEventListener("click", event => {
    const {sort, model} = event.target.closest("th")?.querySelector("[data-sort]")?.dataset ?? {};
    if (sort) change({sort: state.sort === sort && isOf(model) ? `-${sort}` : sort, model: ofMany(model)});
  });
  for (const key of ["facet", "placement", "model"]) find(key).addEventListener("click", () => change({[key]: ""}));
  const turn = by => { if (state.page + by >= 1 && state.page + by <= pages) change({page: state.page + by}); };
  find("before").addEventListener("click", () => turn(-1));
  find("after").addEventListener("click", () => turn(1));
  window.addEventListener("hashchange", () => { read(); show(); });
  View.rowKeys(() => [...body.querySelectorAll("a.go")]);
  keys.n = () => turn(1);
  keys.p = () => turn(-1);
  keys["/"] = () => { filter.focus(); filter.select(); };
  read();
  show();
}
