// Compiles every JSON Schema in a folder with ajv in strict mode: each one alone with the common definitions, then all together.
const fs = require("fs");
const path = require("path");
const Ajv = require("ajv/dist/2020").default;
const formats = require("ajv-formats").default;

const root = process.argv[2];
const schemas = fs.readdirSync(root, { recursive: true }).filter((name) => name.endsWith(".schema.json"))
  .map((name) => ({ name, schema: JSON.parse(fs.readFileSync(path.join(root, name))) }));
const common = schemas.find(({ name }) => name === "common.schema.json").schema;
const disclosure = ["x-disclosure", "x-disclosure-owner", "x-disclosure-hashed"];
const strict = () => formats(new Ajv({ strict: true, allErrors: true })).addVocabulary(disclosure);

let failed = 0;
const attempt = (name, what) => {
  try {
    what();
  } catch (error) {
    failed++;
    console.log(`${name}: ${error.message}`);
  }
};
const together = strict();
for (const { name, schema } of schemas) {
  attempt(name, () => {
    const alone = strict();
    if (schema !== common) alone.addSchema(common);
    alone.compile(schema);
  });
  attempt(`${name} among all`, () => together.addSchema(schema));
}
for (const { name, schema } of schemas) attempt(`${name} among all`, () => together.getSchema(schema.$id));
console.log(`${schemas.length} schemas, ${failed} failures`);
process.exit(failed ? 1 : 0);
