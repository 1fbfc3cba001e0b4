// The page of an example: joins ruler and list, and gives keys their meaning.
"use strict";
{
  const {about, keys, load, say} = View;
  const find = id => document.getElementById(id);
  const follow = id => { const link = find(id); if (link) link.click(); else say("there is none"); };
  keys.n = () => follow("next");
  keys.p = () => follow("previous");
  keys.w = () => follow("wrong");
  keys.c = () => find("copy")?.click();
  const lengths = () => [...document.querySelectorAll(".places[aria-label=Length] > *")];
  const longer = by => {
    const all = lengths(), to = all[all.findIndex(each => each.hasAttribute("aria-current")) + by];
    if (to?.href) to.click(); else say(by > 0 ? "this is the longest context" : "this is the shortest context");
  };
  keys.l = () => longer(1);
  keys.L = () => longer(-1);

  // the state: the table from which one came, the unit, and the model by which tokens are counted
  const state = Object.fromEntries(["from", "u", "at", "model"].map(name => [name, View.given(name)]));
  if (state.from) find("table").hash = state.from;
  // other examples keep table and model; other lengths and placements are opened at the same unit, too
  const carry = () => {
    const {from, u, model} = state;
    for (const link of document.querySelectorAll("#previous, #next, #wrong")) link.hash = View.hash({from, model});
    for (const link of document.querySelectorAll("a.same-unit")) link.hash = View.hash({from, u, model});
  };
  for (const name of ["mousedown", "focusin", "click"]) document.addEventListener(name, carry, true);
  let writing = 0;  // browsers refuse too many changes of an address
  const write = () => { clearTimeout(writing); writing = setTimeout(() => View.keep(state), 300); };

  if (find("list")) load(`${about.key}-outline`).then(begin, error => say(error.message));

  function begin(outline) {
    const bar = new Ruler.Bar(find("ruler"), find("legend"), outline);
    const list = new PromptList.List(find("list"), outline, block => bar.isOutside(block), block => bar.counted(block));
    const firsts = new Map(outline.key.map((key, block) => [key, block]).reverse());
    list.onmove = block => {
      bar.point(block);
      const unit = outline.key[block];
      Object.assign(state, {u: block ? unit : "", at: firsts.get(unit) === block ? "" : block});  // it may stand twice
      write();
    };
    bar.onpick = block => list.go(block, false);
    const step = by => list.go(list.current + by, true);
    keys.j = () => step(1);
    keys.k = () => step(-1);
    find("ruler").addEventListener("keydown", event => {
      const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 20, PageUp: -20}[event.key];
      const to = by ? list.current + by : {Home: 0, End: outline.role.length - 1}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      list.go(to, false);
    });

    const marked = outline.marks.flatMap((bits, block) => bits ? [block] : []);
    const jump = by => {
      const after = marked.filter(block => by > 0 ? block > list.current : block < list.current);
      const to = by > 0 ? after[0] ?? marked[0] : after.at(-1) ?? marked.at(-1);
      if (to === undefined) say("nothing is marked"); else list.go(to, true);
    };
    keys.m = () => jump(1);
    keys.M = () => jump(-1);
    find("marked").addEventListener("click", () => jump(1));
    find("marked").disabled = !marked.length;

    keys["/"] = () => { find("goto").focus(); find("goto").select(); };
    find("goto-form").addEventListener("submit", event => {
      event.preventDefault();
      const words = find("goto").value.trim(), token = Number(words.replaceAll(",", ""));
      if (!words) return;
      const to = Number.isFinite(token) && !outline.key.includes(words) ? bar.at(token)
        : outline.key.findIndex(key => key.toLowerCase().includes(words.toLowerCase()));
      if (to < 0) return say(`no unit has ${words} in its name`);
      find("goto").blur();
      list.go(to, true);
    });

    const arrive = () => {
      const unit = View.given("u"), place = Number(View.given("at"));
      const at = unit === null ? -1 : outline.key[place] === unit ? place : outline.key.indexOf(unit);
      if (at >= 0) list.go(at, true);
      else if (unit !== null) say("this context does not have the unit");
    };
    const counted = find("model");
    const count = () => {
      const chosen = counted.value, notes = find("model-notes");
      state.model = counted.selectedOptions[0]?.dataset.name ?? "";
      write();
      const use = found => {
        bar.rule(found);
        notes.replaceChildren(...(found ? found.notes : []).map(note => View.el("p", "note", note)));
        list.again();
      };
      if (chosen === "") use(null);
      else load(`${about.key}-model-${chosen}`).then(found => { if (counted.value === chosen) use(found); }, error => say(error.message));
    };
    counted?.addEventListener("change", count);
    const choose = () => {
      const name = View.given("model") ?? "", option = [...counted?.options ?? []].find(each => (each.dataset.name ?? "") === name);
      if (option && !option.selected) { option.selected = true; count(); }
    };
    window.addEventListener("hashchange", () => { choose(); arrive(); });
    arrive();
    choose();

    const large = find("large"), image = large.querySelector("img");
    const open = button => {
      image.src = View.picture("large", button.dataset.image);
      image.alt = button.dataset.path;
      large.querySelector("p").textContent = button.dataset.path + (View.isStatic ? " (a copy; mmlongbench view shows the file itself)" : "");
      large.showModal();
    };
    find("list").addEventListener("click", event => {
      const button = event.target.closest("button.open");
      if (button) open(button);
    });
    image.addEventListener("click", () => image.classList.toggle("whole"));
    large.addEventListener("close", () => { image.removeAttribute("src"); image.classList.remove("whole"); });
    keys.o = () => {
      const button = document.querySelector("#list .current button.open");
      if (button) open(button); else say("the unit has no image");
    };
    document.body.dataset.ready = "1";
  }

  find("copy")?.addEventListener("click", async () => {
    try {
      const messages = await load(`${about.key}-messages`), text = JSON.stringify(messages, null, 2);
      const parts = messages.flatMap(each => Array.isArray(each.content) ? each.content : [{type: "text"}]);
      const images = parts.filter(each => each.type !== "text").length;
      await navigator.clipboard.writeText(text);
      say(`copied as JSON: texts ${parts.length - images}, images ${images} as paths in the release (mmlongbench export writes their bytes)`);
    } catch (error) {
      say(`not copied: ${error.message}`);
    }
  });
}
