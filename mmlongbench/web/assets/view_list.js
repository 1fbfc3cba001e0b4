// The prompt as a list of which only the rows near the screen are in the page: at most so many images at a time. Each
// row has a place that is estimated first and measured when the row is shown; what is on the screen does not move.
"use strict";
const PromptList = (() => {
  const {about, el, number, load} = View;
  const AHEAD = 700, MAX_ROWS = 70, MAX_IMAGES = 90, GAP = 8, LINE = 21, HEAD = 44, COLUMN = 292, A_FRAME = 10, MAX_BESIDE = 90;
  const ending = path => path.length > 36 ? `…${path.slice(-35)}` : path;  // the number of a page is at the end
  const MARKS = {gold: "★ gold", needle: "◆ needle", evidence: "▲ evidence"};

  class List {
    constructor(root, outline, isOutside, counted) {
      Object.assign(this, {root, outline, isOutside, counted, shown: new Map(), chunks: new Map(), open: new Set()});
      this.count = outline.rows.block.length;
      this.added = new Set(outline.added);
      this.heights = new Float64Array(this.count);
      this.tops = new Float64Array(this.count + 1);
      this.isMeasured = new Uint8Array(this.count);
      this.column = new Uint8Array(this.count);
      const {chars, images} = outline.rows;
      this.isOne = Uint8Array.from(chars, (each, row) => each <= MAX_BESIDE && images[row] === 1 ? 1 : 0);
      this.current = 0;
      this.onmove = () => {};
      this.width = root.clientWidth;
      this.estimate();
      this.waits = false;
      const soon = () => {
        if (this.waits) return;
        this.waits = true;
        requestAnimationFrame(() => { this.waits = false; this.draw(); });
      };
      this.soon = soon;
      window.addEventListener("scroll", soon, {passive: true});
      window.addEventListener("resize", () => { if (root.clientWidth !== this.width) this.resize(); else soon(); });
      root.addEventListener("click", event => this.click(event));
      soon();
    }

    // units with one image and few words stand side by side, as many as there is room for
    estimate() {
      this.columns = Math.max(1, Math.floor((this.width + GAP) / (COLUMN + GAP)));
      const columns = Math.max(20, (this.width - 40) / 7.4), {chars, tall} = this.outline.rows;
      for (let row = 0; row < this.count; row++) {
        if (!this.isMeasured[row]) this.heights[row] = HEAD + Math.ceil(chars[row] / columns) * LINE + tall[row];
      }
      this.place();
    }

    place() {
      let y = 0;
      for (let row = 0; row < this.count;) {
        let tall = 0, column = 0;
        do {
          this.tops[row] = y;
          this.column[row] = column++;
          tall = Math.max(tall, this.heights[row]);
          row++;
        } while (row < this.count && column < this.columns && this.isOne[row] && this.isOne[row - 1]);
        y += tall + GAP;
      }
      this.tops[this.count] = y;
      this.root.style.height = `${y}px`;
    }

    put(row, element) {
      const wide = (this.width + GAP) / this.columns;
      const x = this.isOne[row] ? this.column[row] * wide : 0;
      element.style.transform = `translate(${x}px, ${this.tops[row]}px)`;
    }

    resize() {
      this.width = this.root.clientWidth;
      this.isMeasured.fill(0);
      const row = this.rowAt(this.offset());
      this.estimate();
      this.soon();
      this.scrollTo(row);
    }

    offset() { return -this.root.getBoundingClientRect().top + this.margin(); }

    // the height of what stays at the top of the screen
    margin() { return document.getElementById("bar").offsetHeight + 12; }

    rowAt(y) {
      let low = 0, high = this.count - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (this.tops[middle] <= y) low = middle; else high = middle - 1;
      }
      return low - this.column[low];
    }

    wanted() {
      const top = this.offset(), bottom = top + window.innerHeight, images = this.outline.rows.images;
      let first = this.rowAt(top), last = first, rows = 1, pictures = images[first];
      while (last + 1 < this.count && this.tops[last + 1] < bottom + AHEAD && rows < MAX_ROWS &&
        pictures + images[last + 1] <= MAX_IMAGES) { last++; rows++; pictures += images[last]; }
      while (first > 0 && this.tops[first] > top - AHEAD && rows < MAX_ROWS &&
        pictures + images[first - 1] <= MAX_IMAGES) { first--; rows++; pictures += images[first]; }
      return [first, last];
    }

    draw() {
      const [first, last] = this.wanted();
      for (const [row, element] of this.shown) {
        if ((row < first || row > last) && !element.contains(document.activeElement)) { element.remove(); this.shown.delete(row); }
      }
      // a frame makes few rows, those on the screen first
      const fresh = [], top = this.offset(), bottom = top + window.innerHeight, order = [];
      for (let row = first; row <= last; row++) order.push(row);
      const isNear = row => this.tops[row + 1] > top && this.tops[row] < bottom;
      order.sort((one, other) => isNear(other) - isNear(one));
      let count = 0;
      for (const row of order) {
        const data = this.data(row);
        const there = this.shown.get(row);
        if (there && !(there.dataset.waits && data)) continue;
        if (++count > A_FRAME) { this.soon(); break; }
        const made = data ? this.make(row, data) : this.placeholder(row);
        if (there) there.replaceWith(made); else this.insert(row, made);
        this.shown.set(row, made);
        if (data) fresh.push(row);
      }
      this.measure(fresh);
      this.root.setAttribute("aria-busy", String([...this.shown.values()].some(each => each.dataset.waits)));
      this.tell();
    }

    insert(row, made) {
      let next = null;
      for (const [other, element] of this.shown) if (other > row && (next === null || other < next[0])) next = [other, element];
      this.root.insertBefore(made, next ? next[1] : null);
    }

    // what a row really needs; if rows above the screen change, the page scrolls by as much
    measure(rows) {
      if (rows.length) {
        const top = this.offset(), anchor = this.rowAt(top), before = this.tops[anchor];
        const found = rows.map(row => this.shown.get(row).offsetHeight);
        let isOther = false;
        rows.forEach((row, at) => {
          this.isMeasured[row] = 1;
          if (Math.abs(found[at] - this.heights[row]) > 0.5) { this.heights[row] = found[at]; isOther = true; }
        });
        if (isOther) this.place();
        const moved = this.tops[anchor] - before;
        if (moved && top > 0) window.scrollBy(0, moved);
      }
      for (const [row, element] of this.shown) this.put(row, element);
    }

    data(row) {
      const number = Math.floor(row / this.outline.chunk);
      const found = this.chunks.get(number);
      if (found === undefined) {
        this.chunks.set(number, null);
        load(`${about.key}-rows-${number}`).then(
          rows => { this.chunks.set(number, rows); this.soon(); },
          error => { this.chunks.set(number, []); View.say(error.message); });
        return null;
      }
      if (this.chunks.size > 60) for (const key of this.chunks.keys()) {
        if (this.chunks.size <= 40) break;
        if (Math.abs(key - number) > 8) { this.chunks.delete(key); View.forget(`${about.key}-rows-${key}`); }
      }
      return found && found[row % this.outline.chunk] || null;
    }

    frame(row, classes) {
      const made = el("article", `unit ${classes}`), block = this.outline.rows.block[row];
      made.tabIndex = -1;
      made.dataset.row = row;
      if (this.isOne[row]) {
        made.classList.add("one");
        made.style.width = `${(this.width + GAP) / this.columns - GAP}px`;
      }
      made.setAttribute("aria-posinset", row + 1);
      made.setAttribute("aria-setsize", this.count);
      if (block === this.current) made.classList.add("current");
      return made;
    }

    placeholder(row) {
      const made = this.frame(row, "waits");
      made.dataset.waits = "1";
      made.style.height = `${this.heights[row]}px`;
      made.append(el("h3", "", "…"));
      return made;
    }

    make(row, data) {
      const made = this.frame(row, `${data.look}${data.marks.length ? " marked" : ""}`);
      const {start, cost: tokens} = this.counted(data.block), image = tokens - data.text;
      const head = el("h3", "");
      head.id = `row-${row}`;
      made.setAttribute("aria-labelledby", head.id);
      if (data.part) head.append(el("span", "", "continued "));
      head.append(el("b", "", data.role), " ", ...data.label ? [el("i", "", data.label), " "] : [], el("span", "", `from token ${number(start)},`), " ");
      for (const mark of data.marks) head.append(el("em", "mark", MARKS[mark]), " ");
      if (this.added.has(data.block)) head.append(el("em", "added-mark", "+ added"), " ");
      if (this.isOutside(data.block)) { head.append(el("em", "outside-mark", "✕ outside the window"), " "); made.classList.add("outside"); }
      const cost = `${number(tokens)} tokens` + (data.text && data.image ? ` (${number(data.text)} text, ${number(image)} image)` : "");
      head.append(el("span", "", cost));
      if (data.unit && !data.pieces.some(each => each.path?.includes(data.unit))) head.append(" ", el("span", "from", ending(data.unit)));
      made.append(head);
      for (const piece of data.pieces) {
        if (piece.speaker) made.append(el("p", "speaker", piece.speaker));
        made.append("t" in piece ? this.text(row, data, piece) : this.picture(piece));
      }
      return made;
    }

    text(row, data, piece) {
      const key = `${data.block}-${piece.piece}`, isOpen = this.open.has(key);
      const words = el("div", "words", ...spans(isOpen && piece.whole || piece.t, piece.folded && !(isOpen && piece.whole)));
      if (!piece.folded) return words;
      const button = el("button", "fold", isOpen ? "Show the beginning" : `Show all ${number(piece.n)} characters`);
      button.type = "button";
      button.dataset.key = key;
      button.setAttribute("aria-expanded", String(isOpen));
      return el("div", "", words, button);
    }

    picture(piece) {
      if (piece.missing) return el("p", "bad", `missing or broken: ${piece.path}`);
      const image = el("img", ""), [width, height] = piece.shown;
      const button = el("button", "open");
      image.decoding = "async";
      image.width = width;
      image.height = height;
      image.alt = `${piece.path.split("/").pop()}, ${piece.size[0]} by ${piece.size[1]} pixels`;
      image.src = View.picture("small", piece.image);
      button.type = "button";
      button.dataset.image = piece.image;
      button.dataset.path = piece.path;
      button.append(image);
      const caption = el("figcaption", "", el("span", "path", ending(piece.path)), ` ${number(piece.size[0])} × ${number(piece.size[1])}, ${number(piece.tokens)} tokens`);
      caption.title = piece.path;
      return el("figure", "", button, caption);
    }

    click(event) {
      const fold = event.target.closest(".fold"), article = event.target.closest("article");
      if (article) this.select(this.outline.rows.block[article.dataset.row]);
      if (!fold) return;
      const row = Number(article.dataset.row), key = fold.dataset.key;
      const again = () => {
        const data = this.data(row);
        if (!data) return;
        const made = this.make(row, data);
        this.shown.get(row)?.replaceWith(made);
        this.shown.set(row, made);
        this.measure([row]);
        made.querySelector(`[data-key="${key}"]`)?.focus();
        this.soon();
      };
      if (this.open.delete(key)) return again();
      const piece = this.data(row)?.pieces.find(each => each.piece === Number(key.split("-")[1]));
      if (!piece) return;
      this.open.add(key);
      if (piece.whole) return again();
      load(`${about.key}-text-${key}`).then(found => { piece.whole = found.t; again(); }, error => View.say(error.message));
    }

    select(block) {
      this.current = block;
      for (const [row, element] of this.shown) element.classList.toggle("current", this.outline.rows.block[row] === block);
      this.onmove(block);
    }

    // the block at the top of the screen is the current one, unless a reader has chosen another on the screen
    tell() {
      const row = this.rowAt(this.offset() + 4), block = this.outline.rows.block[row];
      const now = this.outline.row[this.current];
      const top = this.offset(), isSeen = this.tops[now] >= top - 4 && this.tops[now] < top + window.innerHeight - this.margin();
      if (!isSeen && block !== this.current) this.select(block);
    }

    scrollTo(row) {
      window.scrollTo(0, window.scrollY + this.root.getBoundingClientRect().top + this.tops[row] - this.margin() + 1);
      this.draw();
      // heights above may have changed
      const off = this.root.getBoundingClientRect().top + this.tops[row] - this.margin() + 1;
      if (Math.abs(off) > 1) window.scrollBy(0, off);
    }

    go(block, isFocused) {
      const to = Math.max(0, Math.min(this.outline.role.length - 1, block)), row = this.outline.row[to];
      this.select(to);
      this.scrollTo(row);
      this.select(to);
      if (isFocused) this.shown.get(row)?.focus({preventScroll: true});
    }

    again() {
      for (const element of this.shown.values()) element.remove();
      this.shown.clear();
      this.draw();
    }
  }

  function spans(parts, isCut) {
    const made = parts.map(part => typeof part === "string" ? part : el("mark", "", part[0]));
    if (typeof made[0] === "string") made[0] = made[0].replace(/^\n+/, "");
    const last = made.length - 1;
    if (typeof made[last] === "string") made[last] = made[last].replace(/\n+$/, "") + (isCut ? " …" : "");
    return made;
  }

  return {List};
})();
