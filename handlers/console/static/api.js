// The REST interface: requests, tokens and problems. It also judges from the answers to writes, and from /readyz, whether
// the log behind everything takes writes.

import { clear, report } from "./status.js";
import { clock } from "./dom.js";

const tokenKey = "perpetua.token";
const patience = 15000; // milliseconds that an answer may take; the server gives a write ten seconds
const filePatience = 300000; // the same for a file on its way

let token = sessionStorage.getItem(tokenKey);
const watchers = [];

// Failure is a request that did not succeed. Faults are those of fields: {field, code, message}; those
// of the onboarding interface have the whole place, too: {loc: ["body", "answers", 2, "answer_text"]}.
export class Failure extends Error {
  constructor(status, code, message, faults = [], order = null) {
    super(message);
    Object.assign(this, { status, code, faults, order });
  }
}

// claims returns what the token says of its owner, or null. The server checks it, this page only shows it.
export function claims() {
  if (!token) return null;
  try {
    const text = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
    const c = JSON.parse(text);
    return c.exp * 1000 > Date.now() ? { ...c, scopes: (c.scope ?? "").split(" ") } : null;
  } catch {
    return null;
  }
}

export const currentToken = () => (claims() ? token : null);

// onToken calls back whenever somebody logs in or out, with the reason for a logout.
export function onToken(watcher) {
  watchers.push(watcher);
}

function setToken(value, reason = "") {
  token = value;
  if (value) sessionStorage.setItem(tokenKey, value);
  else sessionStorage.removeItem(tokenKey);
  for (const w of watchers) w(reason);
}

export const logOut = (reason = "") => setToken(null, reason);

// A page that the browser has kept comes back as it was: somebody may have logged in or out on another page since.
addEventListener("pageshow", () => {
  const now = sessionStorage.getItem(tokenKey);
  if (now !== token) setToken(now);
});

async function send(method, path, options, within = patience) {
  try {
    return await fetch(path, { method, cache: "no-store", signal: AbortSignal.timeout(within), ...options });
  } catch (error) {
    if (error.name === "TimeoutError") throw new Failure(0, "NO_ANSWER", "The server did not answer in time.");
    throw new Failure(0, "UNREACHABLE", "The server cannot be reached.");
  }
}

async function failure(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // not JSON: a proxy's answer
  }
  if (body.code) return new Failure(response.status, body.code, body.detail, body.errors, body.order ?? null);
  const detail = Array.isArray(body.detail) ? body.detail : [];
  const faults = detail.map((d) => ({ field: String(d.loc?.at(-1) ?? ""), loc: d.loc ?? [], code: d.type, message: d.msg }));
  const code = typeof body.detail === "string" ? body.detail : `HTTP_${response.status}`;
  return new Failure(response.status, code, faults.length ? "The form is not complete." : response.statusText || code, faults);
}

export async function logIn(username, password) {
  const response = await send("POST", "/auth/jwt/login", { body: new URLSearchParams({ username, password }) });
  if (!response.ok) {
    const f = await failure(response);
    const known = {
      LOGIN_BAD_CREDENTIALS: "The username or the password is wrong.",
      LOGIN_USER_NOT_VERIFIED: "This user is not verified.",
      LOGIN_TOO_MANY_ATTEMPTS: "Too many failed attempts. Try again later.",
    };
    f.message = known[f.code] ?? f.message;
    throw f;
  }
  setToken((await response.json()).access_token);
}

// request sends a request and returns the answer's body.
export const request = async (method, path, body) => (await exchange(method, path, body)).content;

// exchange is request with the status and the log position of the answer, and headers: {content, status, position}. Status 202 says
// that the action waits for a second person: then the content is the proposal. The body is sent as JSON, or as it is if it is a form
// with a file. Writes tell whether the log takes writes.
export async function exchange(method, path, body, headers = {}) {
  const bearer = currentToken();
  if (token && !bearer) logOut("The session has expired.");
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  const form = body instanceof FormData;
  if (body !== undefined && !form) headers["Content-Type"] = "application/json";
  const writes = method !== "GET";
  const slow = writes && !form ? setTimeout(() => report("log-slow", "wait", "Waiting for the log", "A write has not been acknowledged for 3 seconds."), 3000) : 0;
  try {
    const sent = body === undefined || form ? body : JSON.stringify(body);
    const response = await send(method, path, { headers, body: sent }, form ? filePatience : patience);
    if (!response.ok) throw await failure(response);
    if (writes) logWorks();
    return { content: await response.json(), status: response.status, position: response.headers.get("X-Log-Position") };
  } catch (error) {
    if (error.status === 401 && bearer && bearer === token) logOut("The session is no longer valid.");
    if (writes && error.status === 503) logStopped(error);
    else if (writes && error.status > 0) logWorks();
    throw error;
  } finally {
    clearTimeout(slow);
    if (writes) clear("log-slow");
  }
}

const located = (path, query) => {
  const given = Object.entries(query).filter(([, v]) => v !== null && v !== undefined && v !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
};

// get reads something. With a log position the server waits until what it reads from has got that far.
export const get = async (path, query = {}, position = null) =>
  (await exchange("GET", located(path, query), undefined, position ? { "X-Min-Log-Position": position } : {})).content;

// getWithPosition also returns the position in the log that the answer is as of: {content, position}.
export const getWithPosition = (path, query = {}) => exchange("GET", located(path, query));

let stoppedAt = null; // the positions when a write failed, to see when the log goes on
let positions = "";

function logWorks() {
  stoppedAt = null;
  clear("log");
}

function logStopped(error) {
  stoppedAt = positions;
  const why = {
    NOT_ACCEPTED: "The log does not accept writes. The last write changed nothing and can be sent again.",
    OUTCOME_UNKNOWN: "The log has not acknowledged the last write, which may still take effect.",
    LOG_DIVERGED: "The log does not hold records that were read from it before. An operator must look into it.",
    LOG_BROKEN: "The log holds a record that cannot be applied. An operator must look into it.",
  };
  report("log", "bad", "Log stopped", `${why[error.code] ?? error.message} (${error.code}, ${clock(Date.now())})`);
}

// reasons says why a node is not ready, each reason once, whichever of its roles it keeps from working.
function reasons(state) {
  const all = Object.values(state.roles ?? {}).flatMap((role) => role.because ?? []);
  return [...new Set(all)].map((reason) => `${reason}.`).join(" ");
}

// sayFence says that this venue is a copy of another one, and how it can take that one's place.
function sayFence(fence) {
  if (fence.status === "fenced") {
    report("fence", "wait", "Fenced", "This venue is a copy of another one: it sends no webhooks, destroys no keys and registers nobody. " +
      `It can stay so for analysis. To have it act in place of the other, enter ${fence.command} on its data folder.`);
  } else if (fence.status === "settling") {
    report("fence", "wait", "Taking over", "This venue has taken over, and waits until the one before it must have stopped.");
  } else clear("fence");
}

// watchLog looks at /readyz: whether the server is there, whether it is ready, and whether the log moves on again after
// a write failed. It returns where this node stands in each journal.
export async function watchLog() {
  let state;
  try {
    const response = await send("GET", "/readyz", {}, 5000);
    state = await response.json();
    clear("server");
    if (response.ok) clear("ready");
    else report("ready", "bad", "Not ready", `The server answers ${response.status}: ${state.status ?? "it cannot serve"}. ${reasons(state)}`);
  } catch (error) {
    clear("ready"); // it is unknown now
    report("server", "bad", error.code === "NO_ANSWER" ? "No answer" : "Server unreachable", `${error.message ?? error} What is shown may be out of date.`);
    return null;
  }
  const away = Object.entries(state.log_away ?? {}).sort();
  if (away.length) report("log-away", "bad", "Log away", away.map(([name, since]) => `This server has had no contact with the log of ${name} since ${clock(since)}.`).join(" ") + " The page shows the state at that time.");
  else clear("log-away");
  sayFence(state.fence ?? {});
  positions = JSON.stringify(state.journals ?? {});
  if (stoppedAt !== null && stoppedAt !== "" && stoppedAt !== positions) logWorks();
  return state.journals ?? {};
}
