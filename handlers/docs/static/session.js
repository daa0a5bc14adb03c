// Who tries things out: the token that requests carry. It is kept in the session storage of the tab, where the console
// keeps it, too, so one login serves both and nothing outlives the tab.

const key = "perpetua.token";
const byId = (id) => document.getElementById(id);
const watchers = [];

let token = sessionStorage.getItem(key);

// claims returns what a token of the login says of its user, or null: an API key says nothing.
function claims() {
  try {
    const text = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// currentToken is the token or API key, or null.
export function currentToken() {
  const c = token && claims();
  return token && (!c || c.exp * 1000 > Date.now()) ? token : null;
}

// onToken calls back now and whenever the token changes, with the token or null.
export function onToken(watcher) {
  watchers.push(watcher);
  watcher(currentToken());
}

// keep takes a token or API key, or null to log out.
export function keep(value) {
  token = value;
  if (value) sessionStorage.setItem(key, value);
  else sessionStorage.removeItem(key);
  for (const w of watchers) w(currentToken());
}

// A page that the browser has kept comes back as it was: somebody may have logged in or out on another page since.
addEventListener("pageshow", () => {
  const now = sessionStorage.getItem(key);
  if (now !== token) keep(now);
});

function show(value) {
  const c = value && claims();
  byId("who").textContent = c ? `${c.sub} · ${c.broker}` : value ? "API key" : "";
  byId("who").title = c ? `Scopes: ${c.scope}` : "";
  byId("open-login").hidden = Boolean(value);
  byId("logout").hidden = !value;
}

async function logIn(username, password) {
  const response = await fetch("/auth/jwt/login", { method: "POST", cache: "no-store", body: new URLSearchParams({ username, password }) });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    const known = { LOGIN_BAD_CREDENTIALS: "The username or the password is wrong." };
    throw new Error(known[body.detail] ?? `The login was refused (${response.status}${typeof body.detail === "string" ? ` ${body.detail}` : ""}).`);
  }
  keep(body.access_token);
}

const dialog = byId("login-dialog");
byId("open-login").addEventListener("click", () => dialog.showModal());
byId("logout").addEventListener("click", () => keep(null));
byId("login-close").addEventListener("click", () => dialog.close());
byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = event.target.elements;
  const result = byId("login-result");
  result.textContent = "";
  try {
    const pasted = fields.token.value.trim().replace(/^Bearer\s+/i, "");
    if (pasted) keep(pasted);
    else await logIn(fields.username.value, fields.password.value);
    event.target.reset();
    dialog.close();
  } catch (error) {
    result.textContent = error instanceof TypeError ? "The server cannot be reached." : error.message;
  }
});
onToken(show);
