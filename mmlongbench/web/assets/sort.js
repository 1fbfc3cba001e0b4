// Pressing the head of a column sorts the rows by the cells of this column: by the key of a cell or, without a key, by
// its text. Pressing the head again reverses the order.
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.closest("th"), body = head.closest("table").tBodies[0];
  const place = [...head.parentNode.children].indexOf(head);
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = row => {
    const cell = row.children[place], key = cell.dataset.key ?? cell.textContent;
    return isNaN(key) ? key : Number(key);
  };
  const order = (a, b) => { const x = value(a), y = value(b); return x < y ? -1 : x > y ? 1 : 0; };
  body.append(...[...body.rows].sort((a, b) => up ? order(a, b) : order(b, a)));
});
