// Making elements of the page without text that could be taken for markup.

/** Return an element with attributes, properties and listeners, and children that are elements or text. */
export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.startsWith("aria") && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Return a select for names; `texts` are what is shown for them. */
export function choice(names, chosen, change, texts = {}) {
  return make(
    "select",
    { onchange: (event) => change(event.target.value) },
    ...names.map((name) => make("option", { value: name, selected: String(name) === String(chosen) }, texts[name] ?? String(name))),
  );
}

/** Return a number of bytes for a person. */
export function bytes(count) {
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]) {
    if (count < 1024 || unit === "YiB") return `${unit === "B" ? count : count.toPrecision(3)} ${unit}`;
    count /= 1024;
  }
}
