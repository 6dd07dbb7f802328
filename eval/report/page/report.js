"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const total = data.policy.rows.length;
  const PAGE = window.innerWidth < 760 ? 20 : 50;
  const columns = [
    ["instruction", "Instruction"], ["outcome", "Outcome"], ["TAR", "TAR", true], ["TS", "TS", true],
    ["Early20_TS", "Early20", true], ["AMS", "AMS", true], ["policy", "Policy"], ["prompt", "Prompt"],
    ["family", "Family"], ["level", "Level"], ["init_state", "Init", true],
  ];
  const outcomes = ["+ +", "+ −", "− +", "− −"];
  const value = (name, row) => {
    if (name === "outcome") {
      return outcomes[2 * (1 - data.reference_success.rows[row]) + (1 - data.conflict_success.rows[row])];
    }
    const column = data[name];
    return column.texts ? column.texts[column.rows[row]] : column.rows[row];
  };
  const isMeasure = (name) => ["TAR", "TS", "Early20_TS", "AMS"].includes(name);
  const shown = (name, row) => {
    const found = value(name, row);
    if (!isMeasure(name)) return String(found);
    return found === null ? "–" : (found / 10).toFixed(1);
  };
  const haystack = Array.from({ length: total }, (_, row) =>
    ["instruction", "base_instruction", "policy", "suite", "base_task", "family", "level"]
      .map((name) => value(name, row)).join(" ").toLowerCase().replaceAll("_", " "));

  const form = document.getElementById("filters");
  const body = document.getElementById("rows");
  const more = document.getElementById("more");
  const choices = ["policy", "prompt", "family", "level", "outcome"];
  let order = { name: null, descending: false };
  let found = [];
  let visible = PAGE;

  for (const name of choices) {
    const options = name === "outcome" ? outcomes : total ? data[name].texts : [];
    for (const text of options) form.elements[name].add(new Option(text, text));
  }

  const cell = (text, kind) => {
    const element = document.createElement("td");
    element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const tableRow = (row) => {
    const line = document.createElement("tr");
    for (const [name, , number] of columns) {
      const element = cell(shown(name, row), name === "instruction" ? "instruction" : number ? "number" : "");
      if (name === "instruction") {
        const task = document.createElement("small");
        task.textContent = value("suite", row) + ": " + value("base_instruction", row);
        element.append(task);
      }
      line.append(element);
    }
    return line;
  };
  const draw = () => {
    body.replaceChildren(...found.slice(0, visible).map(tableRow));
    more.hidden = visible >= found.length;
    const part = visible < found.length ? `; the first ${visible} are shown` : "";
    document.getElementById("count").textContent = `${found.length} of ${total} ${total === 1 ? "pair" : "pairs"}${part}`;
  };
  const compare = (left, right) => {
    const a = value(order.name, left), b = value(order.name, right);
    if (a === b) return left - right;
    if (a === null) return 1;
    if (b === null) return -1;
    return (a < b ? -1 : 1) * (order.descending ? -1 : 1);
  };
  const update = () => {
    const words = form.elements.search.value.toLowerCase().replaceAll("_", " ").split(/\s+/).filter(Boolean);
    found = [];
    for (let row = 0; row < total; row += 1) {
      const wanted = choices.every((name) => !form.elements[name].value || value(name, row) === form.elements[name].value);
      if (wanted && words.every((word) => haystack[row].includes(word))) found.push(row);
    }
    if (order.name) found.sort(compare);
    visible = PAGE;
    draw();
  };

  for (const [name, title, number] of columns) {
    const head = document.createElement("th");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = title;
    if (number) head.className = "number";
    button.addEventListener("click", () => {
      order = { name, descending: order.name === name && !order.descending };
      for (const other of document.querySelectorAll("#columns th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
      update();
    });
    head.append(button);
    document.getElementById("columns").append(head);
  }
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { visible += 10 * PAGE; draw(); });
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  update();
})();
