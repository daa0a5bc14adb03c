// Light and dark: as the system has it, unless chosen otherwise by the button.

import { byId } from "./dom.js";

const chosen = localStorage.getItem("perpetua.theme");
if (chosen) document.documentElement.dataset.theme = chosen;
byId("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("perpetua.theme", dark ? "light" : "dark");
});
