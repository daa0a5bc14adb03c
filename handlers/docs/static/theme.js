// Light or dark, as the console was told, else as the system has it. Not a module: it runs before anything is painted.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const chosen = localStorage.getItem("perpetua.theme") ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = chosen;
    document.documentElement.classList.toggle("dark-mode", chosen === "dark"); // Swagger UI's name for it
  };
  dark.addEventListener("change", show);
  show();
})();
