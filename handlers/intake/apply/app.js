// The page of an applicant: puts the parts together. It is an example of how to build on the service, in the order of its workflow:
//
//   owners.js        registers a person or a corporate
//   app.js           triggers an entitlement (below)
//   requirements.js  asks what is to be answered, and answers it
//   questions.js     a field for each type of question
//   documents.js     uploads files
//   cases.js         follows the case to its end, and timeline.js tells it in words
//   service.js       how requests are sent, so that nothing is done twice and everything is seen
//
// There is no build step: these files are what the browser runs.

import { claims, onToken, watchLog } from "/console/api.js";
import { byId, el, repeat, words } from "/console/dom.js";
import { say, submitting } from "/console/form.js";
import "/console/login.js";
import { clear, live, report } from "/console/status.js";
import "/console/theme.js";
import { Cases } from "./cases.js";
import { Owners } from "./owners.js";
import { Requirements } from "./requirements.js";
import { forget, post, read } from "./service.js";

let owner = null; // the path of who applies
let requirements = null;
let cases = null;
let entitlements = [];

const owners = new Owners(turnTo);

// turnTo shows what there is of an owner.
async function turnTo(kind, path) {
  if (requirements) requirements.gone = cases.gone = true;
  owner = path;
  requirements = cases = null;
  for (const id of ["case-panel", "asked", "cases-panel"]) byId(id).hidden = !path;
  byId("start-result").replaceChildren();
  if (!path) return;
  const asked = new Requirements(path, refresh);
  await trying(async () => {
    const { items } = await read(`entitlements/${kind}`, { size: 100 });
    if (owner !== path) return;
    entitlements = items;
    byId("entitlement").replaceChildren(...items.map((e) => el("option", { value: e.id }, words(e.name))));
    describe();
    requirements = asked;
    cases = new Cases(path, entitlements);
    await refresh();
  });
}

function describe() {
  byId("entitlement-description").textContent = entitlements.find((e) => e.id === byId("entitlement").value)?.description ?? "There is none to apply for.";
}

byId("entitlement").addEventListener("change", describe);

submitting(byId("start"), byId("start-result"), async () => {
  await post(`${owner}/entitlement_triggers`, { entitlement_id: byId("entitlement").value });
  say(byId("start-result"), "good", "Applied.");
  await refresh();
  byId("asked").focus();
});

// refresh looks at what is asked and how the cases stand. What fails is said at the top of the page until it works again.
const refresh = () => trying(() => Promise.all([requirements?.refresh(), cases?.refresh()]));

async function trying(work) {
  try {
    await work();
    clear("read");
  } catch (failure) {
    if (!failure.code) throw failure;
    if (failure.status) report("read", "bad", "Not read", `${failure.message} (${failure.code})`); // watchLog says when the server is gone
  }
}

// Who is logged in. A client's token has the scope onboarding.

function session(reason) {
  const who = claims();
  const may = who?.scopes.includes("onboarding") ?? false;
  byId("open-login").hidden = Boolean(who);
  byId("logout").hidden = byId("who").hidden = !who;
  byId("who").textContent = who ? `${who.sub} · ${who.broker}` : "";
  byId("workplace").hidden = !may;
  byId("logged-out").hidden = may;
  byId("logged-out").textContent = who ? "This user has no scope onboarding, which applications need." : "Log in as a broker to apply for a person or a corporate.";
  if (reason) report("session", "wait", "Logged out", `${reason} Log in again.`);
  else clear("session");
  forget();
  turnTo("persons", null);
  if (may) owners.load();
}

onToken(session);
session("");

for (const tick of [
  repeat(async () => (await watchLog()) && live("good", "Live"), 2000),
  repeat(refresh, 2000),
]) tick();
