import type { Script } from "../test/model/server.ts";

/** What the demo asks for. */
export const demoPrompt = `Add a --shout flag to the greet command

\`greet --shout Ada\` should print the greeting in upper case. Cover it with a test and mention it in the README.`;

/** The bundled model's answers: fixed, but everything that carries them out is the real thing. */
export const demoScript: Script = () => [
  {
    write: {
      path: "src/greet.js",
      content: `/** The greeting for a name; in upper case where it is to be shouted. */
export function greet(name, { shout = false } = {}) {
  const greeting = \`Hello, \${name}!\`;
  return shout ? greeting.toUpperCase() : greeting;
}
`,
    },
  },
  {
    write: {
      path: "src/main.js",
      content: `#!/usr/bin/env node
import { parseArgs } from "node:util";
import { greet } from "./greet.js";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { shout: { type: "boolean" } } });
const [name = "world"] = positionals;
console.log(greet(name, values));
`,
    },
  },
  {
    write: {
      path: "test/shout.test.js",
      content: `import assert from "node:assert/strict";
import test from "node:test";
import { greet } from "../src/greet.js";

test("shouts where asked to", () => {
  assert.equal(greet("Ada", { shout: true }), "HELLO, ADA!");
});
`,
    },
  },
  {
    shell:
      "printf '\\n    $ greet --shout Ada\\n    HELLO, ADA!\\n' >> README.md && node --test && node src/main.js --shout Ada",
  },
  {
    say: "Added `--shout`, which prints the greeting in upper case. A test covers it, the README shows it, and `node --test` passes.",
  },
];
