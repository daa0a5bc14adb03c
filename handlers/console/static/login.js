// The login of a page: its dialog, the buttons that open and close it, and the one to log out.

import { claims, logIn, logOut, onToken } from "./api.js";
import { byId, restoreFocus } from "./dom.js";
import { say, submitting } from "./form.js";

export const openLogin = () => byId("login-dialog").showModal();

byId("open-login").addEventListener("click", openLogin);
byId("logout").addEventListener("click", () => logOut());
for (const close of document.querySelectorAll("[data-close]")) close.addEventListener("click", () => close.closest("dialog").close());

submitting(byId("login"), byId("login-result"), async () => {
  const fields = byId("login").elements;
  say(byId("login-result"), "wait", "Checking …");
  await logIn(fields.username.value, fields.password.value);
  byId("login-result").replaceChildren();
  byId("login").reset();
  byId("login-dialog").close();
  restoreFocus(byId("login"), byId("who")); // the button that opened the dialog is hidden
});

// The other watchers hide what was for the user. After them, the focus may have to go elsewhere.
onToken(() => {
  const had = document.activeElement;
  queueMicrotask(() => restoreFocus(had, byId(claims() ? "who" : "open-login")));
});
