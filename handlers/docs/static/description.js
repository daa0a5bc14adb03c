// Makes out of the AsyncAPI file what the viewer draws, which is what AsyncAPI's own parser makes of it: every reference
// replaced by what it refers to, and the names kept by which the viewer tells things apart. The parser itself is left out:
// it is as large as half the viewer and takes seconds to find out that the file is sound, which our tests have done.

// describe returns the document for the viewer, and the requests that a client may send, each {name, summary, payload}.
export function describe(file) {
  const root = structuredClone(file);
  name(root.components?.schemas, "x-parser-schema-id");
  name(root.components?.messages, "x-parser-message-name");
  for (const part of ["servers", "channels", "operations"]) name(root[part], "x-parser-unique-object-id");
  name(root.components?.messages, "x-parser-unique-object-id");
  resolve(root, root, new Set());
  const document = { ...root, "x-parser-spec-parsed": true, "x-parser-api-version": 3 };
  return { document, requests: requests(root) };
}

function name(objects, as) {
  for (const [key, object] of Object.entries(objects ?? {})) object[as] ??= key;
}

// resolve replaces references inside a value by what they refer to, each object once.
function resolve(root, value, seen) {
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  seen.add(value);
  for (const key of Object.keys(value)) {
    while (typeof value[key]?.$ref === "string") value[key] = at(root, value[key].$ref);
    resolve(root, value[key], seen);
  }
}

// at returns what stands at a reference inside the document, like #/components/schemas/Order.
function at(root, reference) {
  const found = reference.replace(/^#\//, "").split("/").reduce((v, token) => v?.[token.replaceAll("~1", "/").replaceAll("~0", "~")], root);
  if (found === undefined) throw new Error(`${reference} is not in the description`);
  return found;
}

function requests(root) {
  const all = [];
  for (const operation of Object.values(root.operations)) {
    if (operation.action !== "receive") continue;
    for (const message of operation.messages ?? Object.values(operation.channel.messages)) {
      for (const example of message.examples ?? []) {
        all.push({ name: message.name, summary: example.summary ?? operation.summary, payload: example.payload });
      }
    }
  }
  return all;
}
