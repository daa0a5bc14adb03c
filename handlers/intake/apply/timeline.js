// The events of a case in words.

import { isolated, words } from "/console/dom.js";

const actions = {
  start: "Started", request_information: "More was asked for", request_video_identification: "A video identification was asked for",
  complete_video_identification: "The video identification is over", block: "Put on hold", release: "Released", approve: "Approved", reject: "Rejected",
  cancel: "Withdrawn", terminate: "Terminated", fail: "Failed",
};

// happened tells an event of a timeline in words. It returns strings and elements.
export function happened(event) {
  const told = {
    "entitlement_trigger.created": () => "Applied for",
    "entitlement_trigger.moved": () => `${actions[event.action] ?? words(event.action)}, ${event.actor_kind === "system" ? "automatically" : `by the ${event.actor_kind}`}`,
    "entitlement_trigger.requirements_changed": () => (event.questionnaire_ids.length ? "Questionnaires have to be answered" : "All questionnaires are answered"),
    "notice.given": () => `Receivers are told: ${event.event_type}`,
  }[event.type];
  const why = event.reason ? [": ", isolated(event.reason)] : [];
  return [(told ? told() : event.type) + (event.outcome ? ` (${event.outcome})` : ""), ...why, event.code ? ` (${event.code})` : null];
}
