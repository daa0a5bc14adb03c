// What the viewers leave out for people who use a keyboard or a screen reader.

// accessible is a plugin of Swagger UI.
export const accessible = () => ({
  wrapComponents: {
    // An operation's heading is a button. A link inside it would be a control within a control, so the path is plain text there.
    DeepLink: (Original, { React }) => (props) =>
      React.createElement(props.path?.includes("/") ? "span" : Original, props.path?.includes("/") ? { className: "nostyle" } : props, props.text),
    // The warning says that Swagger UI supports one dialect of JSON Schema only. That of this description is the same but for
    // keywords that it does not use.
    JsonSchemaDialect: () => () => null,
  },
});

// afterDrawing calls work once for each frame in which a viewer has changed what is in a box.
function afterDrawing(box, work) {
  let asked = false;
  const ask = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
  new MutationObserver(ask).observe(box, { childList: true, subtree: true });
  ask();
}

// mend sets the attributes that Swagger UI's components have no property for.
export function mend(box) {
  afterDrawing(box, () => {
    for (const select of box.querySelectorAll("select:not([aria-label])")) select.setAttribute("aria-label", nameOf(select));
    for (const pre of box.querySelectorAll("pre:not([tabindex])")) pre.tabIndex = 0; // it may scroll
    for (const [part, name] of landmarks) {
      const found = box.querySelector(`${part}:not([role])`);
      found?.setAttribute("role", "region");
      found?.setAttribute("aria-label", name);
    }
  });
}

// mendMenu makes a button of what opens the AsyncAPI viewer's table of contents: the viewer takes clicks on it only.
export function mendMenu(box) {
  afterDrawing(box, () => {
    const menu = box.querySelector(".burger-menu:not([role])");
    if (!menu) return;
    for (const [name, value] of [["role", "button"], ["tabindex", "0"], ["aria-label", "Contents"]]) menu.setAttribute(name, value);
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      menu.click();
    });
  });
}

const landmarks = [[".information-container", "Introduction"], [".scheme-container", "Server and authorization"], [".filter", "Filter"]];

function nameOf(select) {
  if (select.id === "servers") return "Server";
  const parameter = select.closest("[data-param-name]")?.dataset.paramName;
  if (parameter) return parameter;
  return select.closest(".responses-wrapper") ? "Content type of the response" : "Content type of the request";
}
