// The ruler: the whole context as one bar to scale. A role has a colour, a pattern and a letter; marks stand above the bar
// with letters. Blocks that are narrower than a pixel are drawn together with their neighbours.
"use strict";
const Ruler = (() => {
  const {el, number} = View;
  const SVG = "http://www.w3.org/2000/svg", TOP = 20, HEIGHT = 34, BELOW = 18;
  const LETTERS = {own: "O", padding: "P", negative: "N", exemplar: "E", gold: "G", needle: "X", frame: "I", other: "U"};
  const LINES = {own: "M0 6L6 0", padding: "M0 3H6", negative: "", exemplar: "M3 0V6", gold: "M0 0L6 6M0 6L6 0", needle: "M0 0L6 6M0 6L6 0", frame: "M0 3H6M3 0V6", other: "M0 0L6 6"};

  function svg(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function patterns(looks) {
    return svg("defs", {}, ...looks.map(look => svg("pattern", {id: `p-${look}`, width: 6, height: 6, patternUnits: "userSpaceOnUse"},
      svg("path", {d: LINES[look] ?? "", class: "hatch"}))));
  }

  class Bar {
    constructor(root, legend, outline) {
      Object.assign(this, {root, legend, outline, start: outline.start, cost: outline.cost, total: outline.total, room: null});
      this.onpick = () => {};
      this.current = 0;
      this.added = new Set(outline.added);
      root.addEventListener("click", event => this.onpick(this.at(this.token(event))));
      root.addEventListener("mousemove", event => this.tell(this.at(this.token(event))));
      root.addEventListener("mouseleave", () => this.tell(this.current));
      window.addEventListener("resize", () => this.draw());
      this.draw();
    }

    // the tokens that the width of the bar stands for
    span() {
      const kept = this.room === null ? this.outline.reserve : 0;
      return Math.max(1, this.total + kept, this.room === null ? this.outline.length : Math.min(this.room, 1.5 * this.total));
    }

    rule(found) {
      this.start = found ? found.start : this.outline.start;
      this.cost = found ? found.cost : this.outline.cost;
      this.total = found ? found.total : this.outline.total;
      this.room = found && found.room !== null ? found.room : null;
      this.isModel = Boolean(found);
      this.draw();
    }

    // the tokens before a block and its own, by the chosen rule
    counted(block) { return {start: this.start[block], cost: this.cost[block]}; }

    isOutside(block) { return this.room !== null && this.start[block] + this.cost[block] > this.room; }

    token(event) {
      const box = this.root.getBoundingClientRect();
      return (event.clientX - box.left) / box.width * this.span();
    }

    at(token) {
      let low = 0, high = this.start.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (this.start[middle] <= token) low = middle; else high = middle - 1;
      }
      return low;
    }

    runs(scale) {
      const made = [];
      this.start.forEach((start, block) => {
        const look = this.outline.roles[this.outline.role[block]].look, end = start + this.cost[block];
        const last = made[made.length - 1], wide = (end - start) * scale, isMarked = this.outline.marks[block] > 0;
        const isAdded = this.added.has(block);
        const joins = last && !isMarked && !last.isMarked && last.isAdded === isAdded && (wide < 3 || last.isJoined) && (last.look === look || (end - last.start) * scale < 1.2);
        if (joins) { last.end = end; last.isJoined = last.isJoined || wide < 3; }
        else made.push({start, end, look, block, isMarked, isAdded, isJoined: wide < 3});
      });
      return made;
    }

    draw() {
      const width = Math.max(200, this.root.clientWidth), scale = width / this.span(), x = token => (token * scale).toFixed(2);
      const looks = [...new Set(this.outline.roles.map(role => role.look))];
      const picture = svg("svg", {width, height: TOP + HEIGHT + BELOW, "aria-hidden": "true"}, patterns(looks));
      picture.append(svg("rect", {x: 0, y: TOP, width, height: HEIGHT, class: "ground"}));
      let before = "";
      for (const run of this.runs(scale)) {
        const wide = Math.max(run.isMarked ? 3 : 0.4, (run.end - run.start) * scale), place = {x: x(run.start), y: TOP, width: wide.toFixed(2), height: HEIGHT};
        picture.append(svg("rect", {...place, class: `fill ${run.look}`}), svg("rect", {...place, fill: `url(#p-${run.look})`, class: run.isMarked ? "edge marked" : wide > 4 && !run.isJoined ? "edge" : ""}));
        if (run.isAdded) picture.append(svg("rect", {...place, y: TOP + HEIGHT - 5, height: 5, class: "added"}));
        const isNew = run.look !== before;
        before = run.look;
        if (wide > 16 && (isNew || run.isMarked)) picture.append(letter(Number(x(run.start)) + wide / 2, TOP + HEIGHT / 2 + 4, LETTERS[run.look] ?? "U", "letter"));
      }
      this.marks(picture, scale, width);
      if (!this.isModel) this.depths(picture, scale);
      if (this.room === null && this.outline.reserve) picture.append(svg("rect", {x: x(this.total), y: TOP, width: Math.max(1, this.outline.reserve * scale), height: HEIGHT, class: "reserve"}));
      if (this.room !== null) this.window(picture, scale, width);
      for (let part = 0; part <= 4; part++) {
        const text = letter(width * part / 4, TOP + HEIGHT + 14, number(Math.round(this.span() * part / 4)), "tick");
        text.setAttribute("text-anchor", part === 0 ? "start" : part === 4 ? "end" : "middle");
        if (width > 420 || part % 2 === 0) picture.append(text);
      }
      // apart from the picture, which is not painted again when it moves
      this.pointer = el("div", "pointer");
      this.scale = scale;
      this.root.replaceChildren(picture, this.pointer);
      this.explain(looks);
      this.point(this.current);
    }

    marks(picture, scale, width) {
      this.outline.marks.forEach((bits, block) => {
        if (!bits) return;
        const name = `${bits & 1 ? "★" : ""}${bits & 2 ? "◆" : ""}${bits & 4 ? "▲" : ""}`;
        const at = (this.start[block] + this.cost[block] / 2) * scale;
        picture.append(letter(Math.min(width - 8, Math.max(8, at)), TOP - 5, name, "pin"));
      });
    }

    // where needles were asked to be, as a share of what stands between instruction and question
    depths(picture, scale) {
      const {role, roles, start, cost, needles} = this.outline;
      const units = role.flatMap((each, block) => ["instruction", "question"].includes(roles[each].name) ? [] : [block]);
      if (!units.length) return;
      const first = start[units[0]], last = units[units.length - 1], room = start[last] + cost[last] - first;
      for (const needle of needles) {
        for (const [kind, share] of [["requested", needle.requested], ["achieved", needle.achieved]]) {
          if (share === null || share < 0 || share > 1) continue;
          const x = ((first + share * room) * scale).toFixed(2);
          picture.append(svg("line", {x1: x, x2: x, y1: TOP - 4, y2: TOP + HEIGHT + 4, class: kind}));
        }
      }
    }

    // a window that ends behind the bar is not shown; the page says what is left of it
    window(picture, scale, width) {
      if (this.room > this.span()) return;
      const x = Math.min(width, this.room * scale);
      if (x < width) picture.append(svg("rect", {x: x.toFixed(2), y: TOP, width: (width - x).toFixed(2), height: HEIGHT, class: "beyond"}));
      picture.append(svg("line", {x1: x.toFixed(2), x2: x.toFixed(2), y1: TOP - 8, y2: TOP + HEIGHT + 6, class: "window"}));
    }

    explain(looks) {
      const names = new Map();
      for (const role of this.outline.roles) names.set(role.look, [...(names.get(role.look) ?? []), role.name]);
      const made = looks.map(look => el("span", "", key(look), ` ${LETTERS[look] ?? "U"} ${names.get(look).join(", ")}`));
      const bits = this.outline.marks.reduce((all, each) => all | each, 0);
      if (bits & 1) made.push(el("span", "", "★ gold"));
      if (bits & 2) made.push(el("span", "", "◆ needle"));
      if (bits & 4) made.push(el("span", "", "▲ evidence"));
      if (this.outline.needles.some(each => each.requested !== null)) made.push(el("span", "", "┆ requested depth, │ achieved depth"));
      const {length} = this.outline.added;
      if (length) made.push(el("span", "", `▁ ${number(length)} ${length === 1 ? "unit" : "units"} added against the shorter context`));
      if (this.room !== null) made.push(...(this.total > this.room ? [el("span", "", "▨ outside the window")] : []));
      else if (this.outline.reserve) made.push(el("span", "", "░ kept free for the answer"));
      this.legend.replaceChildren(...made);
    }

    words(block) {
      const role = this.outline.roles[this.outline.role[block]].name, bits = this.outline.marks[block];
      const marks = [bits & 1 ? "gold" : "", bits & 2 ? "needle" : "", bits & 4 ? "evidence" : ""].filter(Boolean);
      const named = [role, ...marks.filter(mark => mark !== role)].join(", ");
      const unit = this.outline.key[block] && this.outline.key[block] !== role ? ` · ${this.outline.key[block]}` : "";
      return `token ${number(this.start[block])} of ${number(this.total)} · ${named} · ${number(this.cost[block])} tokens · ${number(block + 1)} of ${number(this.start.length)}${this.isOutside(block) ? " · outside the window" : ""}${unit}`;
    }

    tell(block) { document.getElementById("here").textContent = this.words(block); }

    point(block) {
      this.current = block;
      this.pointer.style.transform = `translateX(${(this.start[block] * this.scale).toFixed(1)}px)`;
      this.root.setAttribute("aria-valuenow", Math.round(this.start[block]));
      this.root.setAttribute("aria-valuemax", Math.round(this.total));
      this.root.setAttribute("aria-valuetext", this.words(block));
      this.tell(block);
    }
  }

  function letter(x, y, text, name) {
    const made = svg("text", {x: x.toFixed(1), y, class: name, "text-anchor": "middle"});
    made.textContent = text;
    return made;
  }

  function key(look) {
    return svg("svg", {width: 18, height: 12, "aria-hidden": "true"}, svg("rect", {width: 18, height: 12, class: `fill ${look}`}), svg("rect", {width: 18, height: 12, fill: `url(#p-${look})`}));
  }

  return {Bar};
})();
