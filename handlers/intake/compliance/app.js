// The page of compliance: puts the parts together. See intake.go for what it is and what it may do.

import { claims, onToken, watchLog } from "/console/api.js";
import { byId, repeat } from "/console/dom.js";
import "/console/login.js";
import { clear, live, report } from "/console/status.js";
import "/console/theme.js";
import { Case } from "./case.js";
import { Queue } from "./queue.js";
import { all, forget } from "./service.js";

const queue = new Queue((id) => choose(id));
const shown = new Case((entitlement) => queue.name(entitlement), (id) => queue.find(id), () => refresh());

const has = (scope) => claims()?.scopes.includes(scope) ?? false;
const allowed = () => has("operator") || has("auditor");

// choose turns to a case, whose address the page then has.
async function choose(id) {
  queue.current = id;
  shown.turnTo(id, has("operator"));
  history.replaceState(null, "", id ? `#${id}` : location.pathname);
  await offer();
  await refresh();
  if (id && id === queue.current) byId("case-panel").focus();
}

async function trying(key, work) {
  try {
    await work();
    clear(key);
  } catch (failure) {
    if (!failure.code) throw failure;
    if (failure.status) report(key, "bad", "Not read", `${failure.message} (${failure.code})`); // watchLog says when the server is gone
  }
}

// refresh looks at the queue and the case again. What cannot be read is said at the top of the page until it can.
async function refresh() {
  if (!allowed()) return;
  await Promise.all([trying("queue", () => queue.refresh()), trying("case", () => shown.refresh())]);
}

// offer reads what can be chosen: the entitlements of the filter, and the questionnaires that can be asked for.
const offer = () => trying("offer", async () => {
  const [entitlements, questionnaires] = await Promise.all([all("entitlements"), all("questionnaires")]);
  queue.offer(entitlements);
  shown.decide.questionnaires = questionnaires;
});

async function session(reason) {
  const who = claims();
  byId("open-login").hidden = Boolean(who);
  byId("logout").hidden = byId("who").hidden = !who;
  byId("who").textContent = who ? `${who.sub} · ${who.broker}` : "";
  byId("queue-panel").hidden = byId("case-panel").hidden = !allowed();
  byId("logged-out").hidden = allowed();
  byId("logged-out").textContent = who ? "This user cannot see cases: the scope operator or auditor is needed." : "Log in as an operator to see cases.";
  if (reason) report("session", "wait", "Logged out", `${reason} Log in again.`);
  else clear("session");
  for (const key of ["queue", "case", "offer", "decide"]) clear(key);
  forget();
  queue.clear();
  const wanted = allowed() ? decodeURIComponent(location.hash.slice(1)) : null;
  shown.turnTo(null, false);
  if (!allowed()) return;
  if (wanted) return choose(wanted);
  await offer();
  await refresh();
}

onToken(session);
session("");

for (const tick of [
  repeat(async () => (await watchLog()) && live("good", "Live"), 2000),
  repeat(refresh, 3000),
]) tick();
