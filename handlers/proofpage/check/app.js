// The page "Check my proof".

import { byId, el } from "/console/dom.js";
import { clearFaults, say, showFailure } from "/console/form.js";
import "/console/theme.js";
import { Wrong } from "./bytes.js";
import { verifyLiability } from "./liability.js";
import { verifyReceipt } from "./receipt.js";

const most = 64 << 20; // bytes of a file

// fault is a fault of a field, as forms show them.
const fault = (field, message) => ({ code: "INVALID_VALUE", message: "", faults: [{ field, message }] });

async function read(input, field) {
  const [file] = input.files;
  if (!file) return null;
  if (file.size > most) throw fault(field, "The file is too large.");
  let content = null;
  try {
    content = JSON.parse(await file.text());
  } catch {
    throw fault(field, "The file is not JSON.");
  }
  if (!content || typeof content !== "object" || Array.isArray(content)) throw fault(field, "The file is not a JSON object.");
  return content;
}

// shown shows a text as it is, because members that are repeated would be lost by parsing it.
const shown = (title, text) => [el("h3", {}, title), el("pre", { tabindex: "0", "aria-label": title }, text)];

async function check(fields) {
  const proof = await read(fields.proof, "proof");
  if (!proof) throw fault("proof", "Choose a file.");
  if (!String(proof.format).startsWith("perpetua-liabilities")) {
    if (!fields.key.value.trim()) throw fault("key", "A receipt proves nothing without the key of the log.");
    const { head, units, checkpoint, witnessed } = await verifyReceipt(proof, fields.key.value, fields.policy.value.trim(), Date.now());
    return { text: `Valid. Record ${head.sequence} of ${checkpoint.origin}, ${head.time}: ${head.command.type}, ${head.outcome}. The checkpoint covers ${checkpoint.size} records${witnessed ? ", and the witnesses that the policy asks for have cosigned it" : ""}.`,
      more: units.flatMap((unit, i) => shown(i ? `Disclosed unit ${i}` : "The record", unit)) };
  }
  const statement = await read(fields.statement, "statement");
  const recorded = await verifyLiability(proof, statement);
  const against = statement ? "The recorded statement has the same root." : "Compare it with the statement that the venue has recorded.";
  return { text: `Valid. The balance ${proof.value} of ${proof.customer_code}, in units of 10^-${recorded.scale} ${recorded.asset}, is part of the total ${recorded.total} at record ${recorded.position}. ${against}`,
    more: shown("The statement", JSON.stringify(recorded, null, 2)) };
}

let checks = 0; // only the last check is shown

byId("check").addEventListener("submit", async (event) => {
  event.preventDefault();
  const turn = ++checks;
  const [form, result] = [byId("check"), byId("check-result")];
  clearFaults(form);
  byId("check-shown").replaceChildren();
  if (!crypto.subtle) {
    say(result, "bad", "Browsers offer the functions for this check over HTTPS or on this machine only.");
    return;
  }
  say(result, "wait", "Checking …");
  try {
    const { text, more } = await check(form.elements);
    if (turn !== checks) return;
    say(result, "good", text);
    byId("check-shown").replaceChildren(...more);
  } catch (error) {
    if (turn !== checks) return;
    if (error.name === "NotSupportedError") say(result, "bad", "This browser can't verify Ed25519 signatures.");
    else if (error.faults) {
      showFailure(form, error);
      say(result, "bad", "This field needs attention.");
    } else say(result, "bad", error instanceof Wrong ? `Not valid: ${error.message}.` : `Not valid: the file does not have the form of a proof (${error.message}).`);
  }
});
