// Sorts the table by the column whose head is pressed, best first, within each of its groups: who is ranked stays apart
// from who is not. By mouse or keyboard; the same order is applied after filters change.
let wanted = null;

function sortBy(table, column, direction) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, index) => {
    if (index !== column) return head.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    const bestFirst = direction === Number(head.querySelector("button").dataset.first);
    const order = head.classList.contains("policy") ? ["A to Z", "Z to A"] : ["best first", "worst first"];
    head.dataset.order = order[bestFirst ? 0 : 1];
  });
  const key = (row) => row.cells[column].dataset.sort;
  for (const group of table.tBodies) {
    const rows = [...group.querySelectorAll("tr.entry")];
    rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const [m, n] = [Number(x), Number(y)];
      return direction * (Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n);
    });
    group.append(...rows);
  }
}

element.addEventListener("click", (event) => {
  const head = event.target.closest("thead th");
  const button = event.target.closest("button");
  if (!head || !button) return;
  const sorted = head.getAttribute("aria-sort");
  const direction = sorted ? (sorted === "ascending" ? -1 : 1) : Number(button.dataset.first);
  wanted = [head.cellIndex, direction];
  sortBy(head.closest("table"), ...wanted);
});

new MutationObserver(() => {
  const table = element.querySelector("table");
  if (!table || !wanted || table.dataset.sorted === String(wanted)) return;
  table.dataset.sorted = String(wanted);
  sortBy(table, ...wanted);
}).observe(element, { childList: true, subtree: true });
