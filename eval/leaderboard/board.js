// Sorts the table by the column whose head is pressed, by mouse or keyboard, and applies the same order after filters change.
let wanted = null;

function sortBy(table, column, direction) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, index) => {
    if (index === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  });
  const rows = [...table.tBodies[0].rows];
  const key = (row) => row.cells[column].dataset.sort;
  rows.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === "" || y === "") return (x === "") - (y === "");
    const [m, n] = [Number(x), Number(y)];
    return direction * (Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n);
  });
  table.tBodies[0].append(...rows);
}

element.addEventListener("click", (event) => {
  const head = event.target.closest("thead th");
  if (!head || !event.target.closest("button")) return;
  const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  wanted = [head.cellIndex, direction];
  sortBy(head.closest("table"), ...wanted);
});

new MutationObserver(() => {
  const table = element.querySelector("table");
  if (!table || !wanted || table.dataset.sorted === String(wanted)) return;
  table.dataset.sorted = String(wanted);
  sortBy(table, ...wanted);
}).observe(element, { childList: true, subtree: true });
