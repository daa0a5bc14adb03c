// Forms that show the server's faults where they happen. Each field's label holds the input and carries data-field with
// the name that the interface uses.

import { byId, el, words } from "./dom.js";

// clearFaults takes all messages off a form.
export function clearFaults(form) {
  for (const p of form.querySelectorAll(".fault")) p.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
}

// Business rejections have no field of their own: this is where the cause most likely is.
const rejectedFields = {
  insufficient_margin: "amount", cash_amount_too_small: "cash_amount", price_out_of_band: "limit_price",
  post_only_would_cross: "post_only", reduce_only_invalid: "reduce_only", trigger_would_fire_immediately: "trigger_price",
  no_liquidity: "amount", instrument_halted: "type",
};

// fieldOf is the field of the order that a rejection is about.
function fieldOf(reason, order) {
  if (reason === "trigger_would_fire_immediately" && order.stop_loss_price) return "stop_loss_price";
  return rejectedFields[reason];
}

// showFailure puts what went wrong next to the fields at fault and returns the message for the form as a whole.
export function showFailure(form, failure) {
  clearFaults(form);
  const reason = failure.order?.reason;
  let faults = failure.faults ?? [];
  if (reason && !faults.length) faults = [{ field: fieldOf(reason, failure.order), message: words(reason) }];
  const unplaced = [];
  let first = null;
  for (const fault of faults) {
    const label = fault.field && [...form.querySelectorAll("[data-field]")].find((l) => l.dataset.field === fault.field && !l.closest("[hidden]"));
    const input = label?.querySelector("input, select, textarea");
    if (!input) {
      if (fault.message) unplaced.push(fault.field ? `${fault.field}: ${fault.message}` : fault.message);
      continue;
    }
    const id = `fault-${form.id}-${fault.field}`;
    byId(id)?.remove();
    label.append(el("span", { class: "fault", id }, fault.message));
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", id);
    first ??= input;
  }
  first?.focus();
  let detail = failure.message;
  if (first && !unplaced.length && !failure.order) detail = faults.length > 1 ? "These fields need attention." : "This field needs attention.";
  return `${[detail, ...unplaced.filter((u) => !detail.includes(u))].join(" ")} (${failure.code})`;
}

// say puts a message under a form, where screen readers hear it.
export function say(output, level, text, ...more) {
  output.dataset.level = level;
  output.replaceChildren(text, ...more);
}

// submitting runs work when the form is sent, with its button held meanwhile; what fails is shown in the form.
export function submitting(form, output, work) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter ?? form.querySelector('[type="submit"]');
    if (form.getAttribute("aria-busy") === "true") return;
    form.setAttribute("aria-busy", "true");
    button?.setAttribute("aria-disabled", "true");
    clearFaults(form);
    try {
      await work(button);
    } catch (failure) {
      if (!failure.code) throw failure;
      say(output, "bad", showFailure(form, failure));
    } finally {
      form.removeAttribute("aria-busy");
      button?.removeAttribute("aria-disabled");
    }
  });
}
