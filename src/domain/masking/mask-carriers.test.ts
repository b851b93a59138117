import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createMask, type Mask } from "./mask.ts";

// Properties of the mask with generated secrets in generated carriers.

const base64Characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const unit = fc.constantFrom(...base64Characters.split(""));
const random = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc
    .string({ unit, minLength, maxLength })
    // As good as any random one of its length: one of eight letters alone is a word.
    .filter((text) => /\d/u.test(text) && /[a-z]/u.test(text) && /[A-Z]/u.test(text) && new Set(text).size > 6);

/** A private key: lines of base64 between armour, the last of them shorter. */
const pem = fc
  .tuple(
    fc.constantFrom("PRIVATE KEY", "OPENSSH PRIVATE KEY", "RSA PRIVATE KEY"),
    random(150, 1_200),
    fc.constantFrom(64, 70, 76),
  )
  .map(([kind, body, width]) => `-----BEGIN ${kind}-----\n${wrapped(body, width)}\n-----END ${kind}-----\n`);
const account = fc
  .tuple(pem, random(20, 40))
  .map(([key, id]) =>
    JSON.stringify(
      { type: "service_account", private_key_id: id, private_key: key, client_email: "a@b.example" },
      null,
      2,
    ),
  );
const token = random(16, 80);
const password = fc
  .string({ unit: "grapheme-ascii", minLength: 12, maxLength: 40 })
  .filter((text) => text.trim() === text && /[a-z0-9]{3}/iu.test(text));

function wrapped(text: string, width: number): string {
  return text.replaceAll(new RegExp(`.{${width}}(?=.)`, "gsu"), "$&\n");
}

const inLines = (mark: (line: string, index: number) => string) => (text: string) =>
  text.split("\n").map(mark).join("\n");

/** Prefixes and suffixes that programs put around lines. */
const lineCarriers: Readonly<Record<string, (text: string) => string>> = {
  nothing: (text) => text,
  "other ends of lines": (text) => text.replaceAll("\n", "\r\n"),
  "a diff's plus": inLines((line) => `+${line}`),
  "a diff's minus": inLines((line) => `-${line}`),
  "a diff's blank": inLines((line) => ` ${line}`),
  "a diff of a merge": inLines((line) => `++${line}`),
  indentation: inLines((line) => `        ${line}`),
  tabs: inLines((line) => `\t\t${line}`),
  "cat -n": inLines((line, index) => `${String(index + 1).padStart(6)}\t${line}`),
  "grep -n": inLines((line, index) => `${index + 1}:${line}`),
  "grep -rn": inLines((line, index) => `some/file.txt:${index + 1}:${line}`),
  nl: inLines((line, index) => `${String(index + 1).padStart(6)}  ${line}`),
  "cat -n in a diff": inLines((line, index) => `+     ${index + 1}\t${line}`),
  quotation: inLines((line) => `> ${line}`),
  "a comment": inLines((line) => ` * ${line}`),
  "strings of a program": inLines((line) => `  "${line}" +`),
  "YAML under a key": inLines((line) => `    ${line}`),
};

const spellings: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  JSON: (text) => JSON.stringify(text),
  "URL-encoded": encodeURIComponent,
  "URL-encoded in lower case": (text) => encodeURIComponent(text).replaceAll(/%../gu, (code) => code.toLowerCase()),
  base64: (text) => Buffer.from(text).toString("base64"),
  "base64 for URLs": (text) => Buffer.from(text).toString("base64url"),
  "base64 in lines": (text) => wrapped(Buffer.from(text).toString("base64"), 76),
  "base64 in short lines": (text) => wrapped(Buffer.from(text).toString("base64"), 20),
  hexadecimal: (text) => Buffer.from(text).toString("hex"),
  "hexadecimal in lines": (text) => wrapped(Buffer.from(text).toString("hex").toUpperCase(), 60),
};

/** The parts of a secret that must be seen nowhere: of a key its body's lines. */
function secretParts(secret: string): string[] {
  return [...secret.matchAll(/[A-Za-z0-9+/]{16,}/gu)].map(([part]) => part);
}

function shows(text: string, parts: readonly string[]): boolean {
  // Without separators: pieces that a line break, a sign or a number separates are no better hidden.
  return parts.some((part) => text.includes(part));
}

const around = fc.constantFrom(
  ["", ""],
  ["before ", " after"],
  ["key=", ";"],
  ['{"a":"', '"}'],
  ["line\n", "\nline\n"],
);

describe("a secret of several lines is masked", () => {
  test.each(Object.entries(lineCarriers))("line by line, behind %s", (_, carry) => {
    fc.assert(
      fc.property(fc.oneof(pem, account), around, (secret, [before = "", after = ""]) => {
        const shown = createMask([secret]).text(`${before}${carry(secret.trim())}${after}`);
        return !shows(shown, secretParts(secret)) && shown.includes("[secret]");
      }),
      { numRuns: 40 },
    );
  });

  test.each(Object.entries(spellings))("whole, as %s", (name, spell) => {
    fc.assert(
      fc.property(fc.oneof(pem, account), fc.boolean(), (secret, returns) => {
        const value = returns ? secret.replaceAll("\n", "\r\n") : secret;
        const text = spell(value);
        const shown = createMask([secret]).text(`before ${text} after`);
        // Of a text in lines, each line.
        const left = shown.split(/\r?\n/u).flatMap((line) => line.match(/[A-Za-z0-9+/_-]{16,}/gu) ?? []);
        return name === "plain"
          ? !shows(shown, secretParts(secret))
          : left.every((run) => !text.includes(run) || !isBody(run, secret));
      }),
      { numRuns: 40 },
    );
  });

  test("also in another form of the same JSON", () => {
    fc.assert(
      fc.property(account, fc.constantFrom(0, 4, "\t"), (secret, indent) => {
        const again = JSON.stringify(JSON.parse(secret), null, indent);
        return !shows(createMask([secret]).text(again), secretParts(secret));
      }),
    );
  });
});

/** Whether a run of characters is of what makes the secret one: a spelling of its body. */
function isBody(run: string, secret: string): boolean {
  const body = secretParts(secret).join("");
  const known = [body, Buffer.from(secret).toString("hex"), Buffer.from(secret).toString("base64")].map((text) =>
    text.replaceAll("\n", ""),
  );
  return known.some((text) => text.includes(run));
}

describe("a secret of one line is masked", () => {
  test.each(Object.entries(spellings))("as %s, behind whatever stands before lines", (_, spell) => {
    fc.assert(
      fc.property(fc.oneof(token, password), fc.constantFrom(...Object.values(lineCarriers)), (secret, carry) => {
        const spelt = spell(secret);
        const shown = createMask([secret]).text(`first line\n${carry(spelt)}\nlast line`);
        return shown.includes("[secret]") && !shown.includes(secret);
      }),
      { numRuns: 60 },
    );
  });

  test("however its value was stored: with a newline or blanks at the end", () => {
    fc.assert(
      fc.property(token, fc.constantFrom("\n", "\r\n", "  ", "\n\n"), (secret, end) => {
        const mask = createMask([`${secret}${end}`]);
        return mask.text(`token=${secret};`) === "token=[secret];";
      }),
    );
  });

  test("broken into lines as a terminal does", () => {
    fc.assert(
      fc.property(
        random(90, 300),
        fc.integer({ min: 20, max: 76 }),
        fc.constantFrom(...Object.values(lineCarriers)),
        (secret, width, carry) => {
          const text = carry(wrapped(secret, width));
          const shown = createMask([secret]).text(text);
          const pieces = wrapped(secret, width).split("\n");
          return pieces.every((piece) => piece.length < 8 || !shown.includes(piece));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("in UTF-16 that was read byte by byte", () => {
    fc.assert(fc.property(token, (secret) => createMask([secret]).text(secret.split("").join("\0")) === "[secret]"));
  });
});

/** Masks a text in pieces, as an agent's words arrive. */
function inPieces(mask: Mask, whole: string, cuts: readonly number[]): string {
  let held = "";
  let shown = "";
  let from = 0;
  for (const cut of [...cuts, whole.length]) {
    const to = Math.max(from, Math.min(cut, whole.length));
    held += whole.slice(from, to);
    from = to;
    const keep = mask.unfinished(held);
    shown += mask.text(held.slice(0, held.length - keep));
    held = held.slice(held.length - keep);
  }
  return shown + mask.text(held);
}

test.each([
  ["percent-encoded", encodeURIComponent],
  ["escaped as JSON", (text: string) => text.replaceAll("+", "\\u002b")],
])("a stream that is cut within the escape sequence that a secret begins with is masked: %s", (_, spell) => {
  const secret = "+AAAAAAAA1AAAAXIaD";
  const text = `before\n${spell(secret)}\nafter`;
  const mask = createMask([secret]);
  for (let cut = 0; cut < text.length; cut += 1) expect(inPieces(mask, text, [cut])).toBe("before\n[secret]\nafter");
});

test("a stream that is cut anywhere shows no more than the whole would", () => {
  fc.assert(
    fc.property(
      fc.oneof(pem, account, token),
      fc.constantFrom(...Object.values(spellings)),
      fc.constantFrom(...Object.values(lineCarriers)),
      fc.array(fc.nat(2_500), { maxLength: 6 }),
      (secret, spell, carry, places) => {
        const text = `before\n${carry(spell(secret.trim()))}\nafter`;
        const mask = createMask([secret]);
        const cuts = places.map((place) => place % text.length).sort((a, b) => a - b);
        const whole = mask.text(text);
        const shown = inPieces(mask, text, cuts);
        // What is left of the text in eight characters or more is left of it whole, too.
        const left = (masked: string): string[] =>
          masked.split("[secret]").flatMap((part) => part.match(/[A-Za-z0-9+/]{8,}/gu) ?? []);
        const allowed = left(whole);
        return left(shown).every((run) => allowed.some((other) => other.includes(run)));
      },
    ),
    { numRuns: 300 },
  );
});

describe("ordinary text stays what it is", () => {
  const ordinary = [
    '{\n  "type": "service_account",\n  "project_id": "my-project",\n',
    "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----",
    "apiVersion: v1\nkind: Config\ncurrent-context: production\n",
    "NODE_ENV=production\nLOG_LEVEL=info\n# Managed by hand\n",
    '"auth_uri": "https://accounts.google.com/o/oauth2/auth",\n"token_uri": "https://oauth2.googleapis.com/token",\n',
    "Host github.com\nclusters:\n- cluster:\npreferences: {}\n",
  ];
  const config = `apiVersion: v1
kind: Config
clusters:
- cluster:
    server: https://10.0.0.1:6443
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM1ekNDQWMr
  name: production-cluster
current-context: production
preferences: {}
users:
- name: admin-of-production
  user:
    token: eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMzQ1Njc4OTAifQ
`;
  const variables =
    "# Managed by hand\nNODE_ENV=production\nLOG_LEVEL=info\nDB_PASSWORD=correct-horse-battery\nAPI_URL=https://api.example.com/v1\n";

  test.each(ordinary)("%j, with secrets that are files of keys and values", (text) => {
    fc.assert(
      fc.property(account, (secret) => createMask([secret, config, variables]).text(text) === text),
      { numRuns: 20 },
    );
  });

  test("and of such files what is secret is masked", () => {
    const mask = createMask([config, variables]);
    expect(mask.text("token eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMzQ1Njc4OTAifQ, correct-horse-battery")).toBe(
      "token [secret], [secret]",
    );
    expect(mask.text("+DB_PASSWORD=correct-horse-battery\n+API_URL=https://api.example.com/v1\n")).toBe(
      "+DB_PASSWORD=[secret]\n+API_URL=https://api.example.com/v1\n",
    );
  });
});

test("what stands around the lines of a secret stays, so that a diff is still one", () => {
  const secret =
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nq2w3E4r5T6y7U8i9O0pA==\nab=\n-----END PRIVATE KEY-----\n";
  const patch = `@@ -0,0 +1,5 @@\n+${secret.trim().split("\n").join("\n+")}\n`;
  expect(createMask([secret]).text(patch)).toBe(`@@ -0,0 +1,5 @@\n${"+[secret]\n".repeat(5)}`);
});

test("its time grows with the text and no faster, whatever the secrets and the text are", () => {
  const keys = fc.sample(pem, { numRuns: 50, seed: 1 });
  const periodic = `${"a".repeat(60_000)}b`;
  const mask = createMask([...keys, periodic, "aaaaaaaaab"]);
  const texts: Readonly<Record<string, (length: number) => string>> = {
    words: (length) => "the quick brown fox, and so on.\n".repeat(Math.ceil(length / 32)),
    "beginnings of secrets": (length) =>
      keys
        .map((key) => key.slice(0, 60))
        .join("\n")
        .repeat(Math.ceil(length / 3_000)),
    "one character": (length) => "a".repeat(length),
    newlines: (length) => "\n".repeat(length),
    escapes: (length) => "\\u0061%61".repeat(Math.ceil(length / 9)),
    marks: (length) => `${"1".repeat(200)}:${"+ ".repeat(50)}\n`.repeat(Math.ceil(length / 302)),
  };
  const timeOf = (text: string): number => {
    const times = [0, 1, 2].map(() => {
      const before = process.cpuUsage();
      mask.text(text);
      mask.unfinished(text);
      // Of the processor alone: others may keep it busy.
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    });
    return Math.min(...times);
  };
  mask.text("warm ".repeat(10_000));
  for (const [name, make] of Object.entries(texts)) {
    const [small, large] = [timeOf(make(20_000)), timeOf(make(200_000))];
    // Ten times would be linear; the rest is for a machine with other things to do.
    expect({ name, isLinear: large < 30 * small + 200 }).toEqual({ name, isLinear: true });
  }
});
