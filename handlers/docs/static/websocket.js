// The WebSocket reference: the AsyncAPI viewer over the AsyncAPI file, and beside it a socket to try it out with.

import { mendMenu } from "./accessible.js";
import { describe } from "./description.js";
import { Trial } from "./trial.js";

async function read() {
  const box = document.getElementById("reference");
  let description;
  try {
    const response = await fetch("/asyncapi.json");
    if (!response.ok) throw new Error(`status ${response.status}`);
    description = await response.json();
  } catch (error) {
    box.replaceChildren(`The description cannot be read: ${error.message}`);
    return;
  }
  const { document: parsed, requests } = describe(description);
  const config = { show: { sidebar: true, errors: true }, expand: { messageExamples: true }, sidebar: { showOperations: "bySpec" },
    sendLabel: "sent by the server", receiveLabel: "sent by you", requestLabel: "request", replyLabel: "sent by you, and answered" };
  window.AsyncApiStandalone.render({ schema: parsed, config }, box);
  mendMenu(box);
  new Trial(requests);
}

read();
