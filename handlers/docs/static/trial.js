// Tries the WebSocket out: one connection, a message chosen from the description's examples, and all that went and came.

import { currentToken } from "./session.js";

const kept = 300; // messages listed
const byId = (id) => document.getElementById(id);

function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

export class Trial {
  #requests;
  #socket = null;
  #counts = { sent: 0, received: 0 };

  // requests are the examples of what a client may send: {name, summary, payload}.
  constructor(requests) {
    this.#requests = requests;
    byId("example").replaceChildren(...requests.map((r, i) => el("option", { value: i }, title(r))));
    byId("example").addEventListener("change", () => this.#choose());
    byId("connect").addEventListener("click", () => (this.#socket ? this.#socket.close() : this.#connect()));
    byId("send").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    byId("message").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.#send();
      }
    });
    byId("clear").addEventListener("click", () => this.#clear());
    this.#choose();
  }

  // choose puts the chosen example into the editor. A login's place-holder is replaced by the token there is.
  #choose() {
    const payload = structuredClone(this.#requests[byId("example").value]?.payload ?? {});
    if (payload.op === "authenticate" && currentToken()) payload.data.token = currentToken();
    byId("message").value = JSON.stringify(payload, null, 2);
    byId("message-fault").textContent = "";
  }

  // connect opens the socket; then, if somebody is logged in, it is authenticated.
  #connect() {
    const address = new URL("/v1/ws", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    this.#socket = socket;
    this.#state("wait", "Connecting");
    byId("connect").textContent = "Disconnect";
    const opened = new Promise((resolve) => {
      socket.addEventListener("open", () => {
        this.#state("on", "Connected");
        const token = currentToken();
        if (token) this.#write({ op: "authenticate", data: { token } });
        resolve();
      });
      socket.addEventListener("close", () => resolve());
    });
    socket.addEventListener("message", (event) => socket === this.#socket && this.#received(event.data));
    socket.addEventListener("close", (event) => {
      if (socket !== this.#socket) return;
      this.#socket = null;
      byId("connect").textContent = "Connect";
      this.#state("off", event.code === 1000 || event.code === 1005 ? "Not connected" : `Closed: ${event.code}${event.reason ? ` ${event.reason}` : ""}`);
    });
    return opened;
  }

  #state(level, text) {
    byId("socket-state").dataset.level = level;
    byId("socket-state").textContent = text;
  }

  // send sends what is in the editor, on a connection that is made if there is none.
  async #send() {
    const fault = byId("message-fault");
    let payload;
    try {
      payload = JSON.parse(byId("message").value);
    } catch (error) {
      fault.textContent = `This is not JSON: ${error.message}`;
      return;
    }
    fault.textContent = "";
    if (!this.#socket) await this.#connect();
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      fault.textContent = "The connection is not open.";
      return;
    }
    this.#write(payload);
  }

  #write(payload) {
    this.#socket.send(JSON.stringify(payload));
    this.#counts.sent++;
    const shown = payload.op === "authenticate" ? { ...payload, data: { ...payload.data, token: "…" } } : payload;
    this.#list("sent", payload.op ?? "message", shown);
  }

  #received(text) {
    this.#counts.received++;
    const m = JSON.parse(text);
    if (m.op === "authenticated") this.#state("on", "Connected, authenticated");
    const what = m.op ? [m.op, m.channel ?? m.code ?? m.status] : [m.channel, m.type];
    this.#list(m.op === "error" || m.status >= 400 ? "received bad" : "received", what.filter(Boolean).join(" · "), m);
  }

  // list puts a message on top of the list, unless that is paused; the counts go on.
  #list(kind, what, m) {
    byId("counts").textContent = `${this.#counts.sent} sent, ${this.#counts.received} received`;
    byId("no-traffic").hidden = true;
    if (byId("pause").checked && kind !== "sent") return;
    const line = el("summary", {}, el("span", { class: "arrow" }, kind === "sent" ? "↑" : "↓"), el("span", { class: "what" }, what),
      el("span", { class: "glance" }, JSON.stringify(m)), el("time", {}, new Date().toLocaleTimeString([], { hour12: false })));
    const details = el("details", {}, line);
    details.addEventListener("toggle", () => details.append(el("pre", { tabindex: "0" }, JSON.stringify(m, null, 2))), { once: true });
    const list = byId("traffic");
    list.prepend(el("li", { class: kind }, details));
    while (list.children.length > kept) list.lastElementChild.remove();
  }

  #clear() {
    this.#counts = { sent: 0, received: 0 };
    byId("traffic").replaceChildren();
    byId("counts").textContent = "";
    byId("no-traffic").hidden = false;
  }
}

// title names an example by what it says and, where that does not tell it from others, by what it holds.
function title({ name, summary, payload }) {
  const topics = payload.op === "subscribe" ? `: ${payload.args.join(", ")}` : "";
  return `${payload.op ?? name}${topics} — ${summary.replace(/\.$/, "")}`;
}
