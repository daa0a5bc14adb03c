// One WebSocket for all that is live. It comes back by itself, subscribes again to what is wanted, and says when it is
// not to be trusted: when it is gone, and when it is silent.

import { clear, live, report } from "./status.js";

const heartbeat = 4000; // between pings
const silence = 10000; // without any message the stream is stale
const firstPause = 500;
const longestPause = 10000;
const privateTopics = ["orders", "trades", "balance-changes", "positions", "margin"];

export class Stream {
  #socket = null;
  #topics = new Map(); // topic → subscription
  #attempts = 0;
  #heard = 0;
  #token = () => null;
  #denied = () => {};
  #timer = 0;

  // token returns the access token or null; denied is called when the server does not accept it any more.
  constructor(token, denied) {
    this.#token = token;
    this.#denied = denied;
    setInterval(() => this.#beat(), heartbeat);
    document.addEventListener("visibilitychange", () => document.hidden || this.#beat());
    this.#connect();
  }

  // subscribe wants a topic from now on. Its handlers: start() with each subscription that begins, after which messages
  // come without a gap, and message(m). They may carry data, and a handler resume(), which is waited for before
  // each subscription and returns the log position from which on messages are wanted. The server may refuse it as too old: tooOld()
  // is called before the next resume().
  subscribe(topic, handlers, data = null) {
    const subscription = { topic, handlers, data, private: privateTopics.includes(topic), on: false, pause: 0 };
    this.#topics.set(topic, subscription);
    this.#ask(subscription);
  }

  unsubscribe(topic) {
    if (!this.#topics.delete(topic)) return;
    clear(`stream ${topic}`);
    this.#send({ op: "unsubscribe", args: [topic] });
  }

  // resubscribe begins a topic anew, after a gap. What still comes from before is left out.
  resubscribe(topic) {
    const subscription = this.#topics.get(topic);
    if (!subscription) return;
    subscription.on = false;
    this.#send({ op: "unsubscribe", args: [topic] });
    this.#ask(subscription);
  }

  // reconnect begins everything anew, for another user.
  reconnect() {
    this.#attempts = 0;
    this.#socket?.close();
    this.#lost(this.#socket, true);
  }

  #connect() {
    clearTimeout(this.#timer);
    const address = new URL("/v1/ws", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    this.#socket = socket;
    this.#heard = Date.now();
    socket.addEventListener("open", () => this.#opened(socket));
    socket.addEventListener("close", () => this.#lost(socket));
    socket.addEventListener("message", (event) => socket === this.#socket && this.#received(JSON.parse(event.data)));
  }

  #opened(socket) {
    if (socket !== this.#socket) return;
    const token = this.#token();
    if (token) this.#send({ op: "authenticate", data: { token } });
    for (const subscription of this.#topics.values()) this.#ask(subscription);
    this.#send({ op: "ping" });
  }

  #lost(socket, wanted = false) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    for (const subscription of this.#topics.values()) subscription.on = false;
    clear("stale");
    if (!wanted) report("socket", "bad", "Connection lost", "Book, trades and orders are not updated. Reconnecting.");
    live("wait", "Connecting");
    const pause = wanted ? 0 : Math.min(longestPause, firstPause * 2 ** this.#attempts++) * (0.75 + Math.random() / 2);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), pause);
  }

  #beat() {
    if (!this.#socket) return;
    const quiet = Date.now() - this.#heard;
    if (quiet > 2 * silence) {
      const socket = this.#socket;
      socket.close(); // which may take long when nobody answers
      this.#lost(socket);
    } else {
      if (quiet > silence) report("stale", "bad", "Stream is stale", `No message has come from the server for more than ${silence / 1000} seconds. What is shown may be out of date.`);
      this.#send({ op: "ping" });
    }
  }

  async #ask(subscription) {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN || (subscription.private && !this.#token())) return;
    const message = { op: "subscribe", args: [subscription.topic] };
    if (subscription.data) message.data = subscription.data;
    if (subscription.handlers.resume) {
      const position = await subscription.handlers.resume();
      if (socket !== this.#socket || this.#topics.get(subscription.topic) !== subscription) return;
      if (!position) return this.#later(subscription);
      message.resume_from = position;
    }
    this.#send(message);
  }

  // later asks again after a pause, which grows.
  #later(subscription) {
    subscription.pause = Math.min(longestPause, (subscription.pause || firstPause) * 2);
    setTimeout(() => this.#topics.get(subscription.topic) === subscription && !subscription.on && this.#ask(subscription), subscription.pause);
  }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #received(message) {
    this.#heard = Date.now();
    this.#attempts = 0;
    clear("stale");
    clear("socket");
    if (message.op === "error") return this.#refused(message);
    if (message.op === "pong") return live("good", "Live");
    const subscription = this.#topics.get(message.channel);
    if (!subscription) return;
    if (message.op === "subscribed") {
      subscription.on = true;
      subscription.pause = 0;
      clear(`stream ${subscription.topic}`);
      subscription.handlers.start?.();
    } else if (!message.op && subscription.on) {
      subscription.handlers.message(message);
    }
  }

  // refused handles an error of the server: of a topic, which only ends that subscription, or of the connection.
  #refused({ code, message, args }) {
    if (code === "AUTHENTICATION_FAILED") return this.#denied("The server no longer accepts the session.");
    const subscription = this.#topics.get(args?.[0]);
    if (!subscription || code === "ALREADY_SUBSCRIBED" || code === "NOT_SUBSCRIBED") return;
    subscription.on = false;
    if (code === "AUTHENTICATION_REQUIRED") {
      if (this.#token()) this.#denied("The session has expired.");
      return;
    }
    const upstream = code.includes("UPSTREAM");
    report(`stream ${subscription.topic}`, "bad", upstream ? "Stream ended" : "Stream refused", `${subscription.topic}: ${message} (${code}).`);
    if (code === "RESUME_TOO_OLD") subscription.handlers.tooOld?.();
    if (upstream || code === "RESUME_TOO_OLD") this.#later(subscription);
  }
}
