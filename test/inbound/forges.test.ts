import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { automationStatusName } from "../../src/domain/automations/automation-file.ts";
import { forgeEventSchema } from "../../src/domain/automations/forge-event.ts";
import { InvalidInputError } from "../../src/domain/errors/errors.ts";
import { deliveringForges, readerOf } from "../../src/inbound/forges/readers.ts";
import { delivered, secret, signed, signedAt, signingToken, type Sample } from "./deliveries.ts";
import { azureSamples } from "./samples/azure.ts";
import { bitbucketDataCenterSamples, bitbucketSamples } from "./samples/bitbucket.ts";
import { giteaSamples } from "./samples/gitea.ts";
import { examples, nothing, tellings } from "./samples/github.ts";
import { gitlabSamples } from "./samples/gitlab.ts";

const documented = [
  ...gitlabSamples,
  ...giteaSamples,
  ...bitbucketSamples,
  ...bitbucketDataCenterSamples,
  ...azureSamples,
];
/** Enough of GitHub's for each event and action. */
const ofGitHub: readonly Omit<Sample, "names">[] = [...new Map(examples.map((each) => [each.key, each])).values()];
const all: readonly Omit<Sample, "names">[] = [...documented, ...ofGitHub];

/** Reads a verified delivery; each event is in the common form. */
function read(sample: Omit<Sample, "names">, id = "d-1") {
  const delivery = delivered(sample, secret, id);
  const reader = readerOf(sample.forge);
  expect(reader.verify(delivery, [secret], signedAt)).toBe(true);
  const result = reader.read(delivery);
  for (const { name, event } of result.events) expect(forgeEventSchema.parse(event).name).toBe(name);
  return result;
}

describe("all examples that GitHub publishes", () => {
  test("tell what the table says", () => {
    const counts = new Map<string, [Set<string>, number, number]>();
    for (const sample of examples) {
      const [names, some, none] = counts.get(sample.key) ?? [new Set(), 0, 0];
      const { events } = read(sample);
      for (const { name } of events) names.add(name);
      counts.set(sample.key, [names, some + (events.length === 0 ? 0 : 1), none + (events.length === 0 ? 1 : 0)]);
    }
    const rows = [...counts].map(([key, [names, some, none]]) => [key, [[...names].join(" "), some, none]] as const);
    expect(Object.fromEntries(rows.filter(([, [, some]]) => some > 0))).toEqual(tellings);
    expect(rows.filter(([, [, some]]) => some === 0).map(([key]) => key)).toEqual(expect.arrayContaining([...nothing]));
    expect(new Set([...Object.keys(tellings), ...nothing])).toEqual(new Set(counts.keys()));
  });
});

test.each(documented.map((sample) => [sample.forge, sample.title, sample] as const))(
  "%s, %s",
  (_forge, _title, sample) => {
    expect(read(sample).events.map(({ name }) => name)).toEqual(sample.names);
  },
);

test("a status has the name that it was set with, by which Offstage's own is known", () => {
  const name = automationStatusName;
  const set = (title: string, forge: Sample["forge"], change: (payload: Record<string, unknown>) => object) => {
    const found = all.find((each) => each.forge === forge && each.title.includes(title));
    if (found === undefined) throw new Error(`no sample ${title}`);
    const payload = { ...found.payload, ...change(found.payload) };
    const { checks } = forgeEventSchema.parse(read({ ...found, payload }).events[0]?.event);
    return [checks?.kind, checks?.name];
  };
  expect(set(" status ", "github", () => ({ context: name, state: "failure" }))).toEqual(["status", name]);
  expect(set("a status failed", "gitea", () => ({ context: name }))).toEqual(["status", name]);
  const ofBitbucket = (payload: Record<string, unknown>) => ({
    commit_status: { ...(payload["commit_status"] as object), key: name, name },
  });
  expect(set("repo:commit_status_created", "bitbucket", ofBitbucket)).toEqual(["status", name]);
});

test("the same delivery under another id has the same content", () => {
  for (const sample of all) {
    const keys = (id: string): unknown[] => read(sample, id).events.map(({ contentKey }) => contentKey);
    expect(keys("again")).toEqual(keys("first"));
  }
});

test("no two happenings of one delivery have the same content", () => {
  for (const sample of all) {
    const keys = read(sample).events.map(({ contentKey }) => contentKey);
    expect(new Set(keys).size, `${sample.forge} ${sample.title}`).toBe(keys.length);
  }
});

describe("deliveries are verified as they were sent", () => {
  const bodies: readonly (readonly [string, Buffer])[] = [
    ["what is not UTF-8", Buffer.from('{"a":"\u00ff"}', "latin1")],
    ["a byte order mark", Buffer.from('\ufeff{"a":1}')],
    ["CRLF", Buffer.from('{\r\n  "a": 1\r\n}\r\n')],
    ["escaped characters", Buffer.from(String.raw`{"a":"\u00e9\ud83d\ude00\u0000\ud800"}`)],
  ];
  for (const forge of deliveringForges) {
    const { verify, read: readOf } = readerOf(forge);
    test.each(bodies)(`${forge}, %s`, (_, body) => {
      const delivery = signed(forge, {}, body);
      expect(verify(delivery, [secret], signedAt)).toBe(true);
      expect(readOf(delivery).events).toEqual([]);
    });
    test(`${forge}, with either of two secrets, and with no other`, () => {
      const delivery = signed(forge, {}, Buffer.from("{}"));
      expect(verify(delivery, ["new", secret], signedAt)).toBe(true);
      expect(verify(delivery, ["new"], signedAt)).toBe(false);
      expect(verify(delivery, [], signedAt)).toBe(false);
      expect(verify({ headers: {}, body: delivery.body }, [secret], signedAt)).toBe(false);
    });
    test(`${forge}, with an empty secret never`, () => {
      expect(verify(signed(forge, {}, Buffer.from("{}"), ""), [""], signedAt)).toBe(false);
    });
  }
  test.each(["github", "gitea", "bitbucket", "bitbucketDataCenter"] as const)("%s, with another body not", (forge) => {
    const delivery = signed(forge, {}, Buffer.from('{"a":1}'));
    expect(readerOf(forge).verify({ ...delivery, body: Buffer.from('{"a":2}') }, [secret], signedAt)).toBe(false);
  });
});

describe("a signing token of GitLab", () => {
  const { verify } = readerOf("gitlab");
  const delivery = signed("gitlab", {}, Buffer.from("{}"), signingToken);
  test("is asked for by itself", () => {
    expect(verify(delivery, [signingToken], signedAt)).toBe(true);
    expect(verify(delivery, [secret, signingToken], signedAt)).toBe(true);
    expect(verify({ ...delivery, body: Buffer.from("[]") }, [signingToken], signedAt)).toBe(false);
    expect(verify(delivery, [signingToken], signedAt + 301_000)).toBe(false);
  });
  test("can't be sent as it is instead", () => {
    const sent = { headers: { "x-gitlab-token": signingToken }, body: Buffer.from("{}") };
    expect(verify(sent, [signingToken], signedAt)).toBe(false);
  });
  test("is not made of a guessable secret token", () => {
    // As base64 this is nothing, so the key would be empty.
    const words = "---";
    expect(verify(signed("gitlab", {}, Buffer.from("{}"), "whsec_"), [words], signedAt)).toBe(false);
  });
});

test("GitHub's published example of a signature is accepted", () => {
  // https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
  const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
  const delivery = { headers: { "x-hub-signature-256": signature }, body: Buffer.from("Hello, World!") };
  expect(readerOf("github").verify(delivery, [secret], 0)).toBe(true);
});

test("Atlassian's published example of a signature is accepted", () => {
  // https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/#Securing-webhooks
  const signature = "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9";
  const delivery = { headers: { "x-hub-signature": signature }, body: Buffer.from("Hello World!") };
  expect(readerOf("bitbucket").verify(delivery, [secret], 0)).toBe(true);
});

test.each(["x-forgejo-signature", "x-gitea-signature"])("Gitea and Forgejo sign in %s", (header) => {
  const { headers, body } = signed("gitea", {}, Buffer.from("{}"));
  const signature = headers["x-gitea-signature"];
  expect(readerOf("gitea").verify({ headers: { [header]: signature }, body }, [secret], 0)).toBe(true);
  const asGitHub = { "x-hub-signature-256": `sha256=${signature}` };
  expect(readerOf("gitea").verify({ headers: asGitHub, body }, [secret], 0)).toBe(true);
});

test("Azure DevOps may send the secret in a header of its own", () => {
  const { verify } = readerOf("azure");
  const body = Buffer.from("{}");
  expect(verify({ headers: { "x-offstage-token": secret }, body }, [secret], 0)).toBe(true);
  const asUser = Buffer.from(`${secret}:`).toString("base64");
  expect(verify({ headers: { authorization: `Basic ${asUser}` }, body }, [secret], 0)).toBe(false);
  expect(verify({ headers: { authorization: `Bearer ${secret}` }, body }, [secret], 0)).toBe(false);
});

test("a payload may come as a form, as GitHub and Gitea send it by default", () => {
  const push = examples.find(({ key, payload }) => key === "push" && String(payload["ref"]).startsWith("refs/heads/"));
  const body = Buffer.from(new URLSearchParams({ payload: JSON.stringify(push?.payload) }).toString());
  const headers = { "content-type": "application/x-www-form-urlencoded", "x-github-event": "push" };
  const delivery = signed("github", headers, body);
  expect(readerOf("github").verify(delivery, [secret], 0)).toBe(true);
  expect(
    readerOf("github")
      .read(delivery)
      .events.map(({ name }) => name),
  ).toEqual(["push"]);
});

describe("what is no payload is refused by name", () => {
  test.each([
    ["nothing", "", "body: must be JSON"],
    ["a list", "[]", "body: must be a JSON object"],
    ["null", "null", "body: must be a JSON object"],
    ["half of it", '{"a":', "body: must be JSON"],
    ["deep nesting", `{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`, "body: must be nested at most 100 deep"],
  ])("%s", (_, body, message) => {
    for (const forge of deliveringForges) {
      expect(() => readerOf(forge).read(signed(forge, {}, Buffer.from(body)))).toThrow(new InvalidInputError(message));
    }
  });
  test("a form without a payload", () => {
    const headers = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" };
    const delivery = { headers, body: Buffer.from("a=1") };
    expect(() => readerOf("gitea").read(delivery)).toThrow(InvalidInputError);
  });
});

test("a field named __proto__ is no prototype", () => {
  const { payload, headers } = gitlabSamples.find(({ title }) => title === "issue: reopened") as Sample;
  const { action, ...attributes } = payload["object_attributes"] as Record<string, unknown>;
  expect(action).toBe("reopen");
  for (const escaped of ["", String.raw`"a":"\u0000",`]) {
    const hidden = JSON.stringify(attributes).replace("{", `{${escaped}"__proto__":{"action":"reopen"},`);
    const body = JSON.stringify({ ...payload, object_attributes: "here" }).replace('"here"', hidden);
    expect(readerOf("gitlab").read(signed("gitlab", headers, Buffer.from(body))).events).toEqual([]);
  }
});

/** A place in a payload: what to do there, and how far through the payload it is. */
const mutation = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  kind: fc.constantFrom("remove", "null", "replace"),
  value: fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>(
      "x".repeat(70_000),
      "😀".repeat(35_000),
      "\ud800\0",
      "constructor",
      "__proto__",
      "toString",
      "",
    ),
    fc.constantFrom<unknown>(
      { toString: 1, valueOf: null },
      { length: -1 },
      [null],
      [[[]]],
      1e308,
      -0,
      2 ** 53,
      true,
      {},
    ),
    fc.constant<unknown>(Array.from({ length: 200 }, () => ({ id: 1, name: "n", title: "t" }))),
  ),
});

function mutated(payload: unknown, mutations: readonly { at: number; kind: string; value: unknown }[]): unknown {
  const copy = { root: structuredClone(payload) };
  for (const { at, kind, value } of mutations) {
    const places: (readonly [Record<string, unknown>, string])[] = [];
    const walk = (object: Record<string, unknown>): void => {
      for (const [key, inner] of Object.entries(object)) {
        places.push([object, key]);
        if (typeof inner === "object" && inner !== null && places.length < 5_000)
          walk(inner as Record<string, unknown>);
      }
    };
    walk(copy.root as Record<string, unknown>);
    const place = places[Math.floor(at * places.length)];
    if (place === undefined) continue;
    const [object, key] = place;
    if (kind === "remove") delete object[key];
    // A copy: a later mutation may be inside of it.
    else object[key] = kind === "null" ? null : structuredClone(value);
  }
  return copy.root;
}

test("whatever is wrong with a payload, it tells events in the common form, or is refused", () => {
  fc.assert(
    fc.property(fc.constantFrom(...all), fc.array(mutation, { minLength: 1, maxLength: 4 }), (sample, mutations) => {
      const payload = mutated(sample.payload, mutations) as Record<string, unknown>;
      const delivery = delivered({ ...sample, payload });
      try {
        const { events } = readerOf(sample.forge).read(delivery);
        expect(events.length).toBeLessThan(300);
        for (const { name, event, contentKey, subject } of events) {
          const { payload: raw, ...fields } = forgeEventSchema.parse(event);
          expect(fields.name).toBe(name);
          expect(contentKey?.length ?? 0).toBeLessThan(120);
          expect(subject?.length ?? 0).toBeLessThan(4_100);
          const json = JSON.stringify(fields);
          expect(json.length).toBeLessThan(1_000_000);
          expect(/\\u0000|\\ud[89a-f]/iu.test(json + JSON.stringify(raw).replaceAll(/\\\\/gu, ""))).toBe(false);
        }
      } catch (error) {
        if (!(error instanceof InvalidInputError)) throw error;
      }
    }),
    { numRuns: 3_000 },
  );
});
