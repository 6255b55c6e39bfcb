// Runs before anything is painted, so that no page flashes in the other colours.
(() => {
  try {
    const chosen = localStorage.getItem("moldau-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden; then the system decides.
  }
})();
