import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { signDelivery } from "../../../test/inbound/sign-delivery.ts";
import {
  isSourceEventName,
  type SourceName,
  sourceEventNames,
  sourceEventSchema,
  sourceNames,
} from "../../domain/automations/source-event.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { InboundDelivery, ReadDelivery } from "../delivery.ts";
import { at } from "./payload.ts";
import { sampleDelivery, type SourceSample } from "./source.ts";
import { sources } from "./sources.ts";

/** When Linear's samples say that they were sent. */
const now = Date.parse("2026-08-19T12:00:01.000Z");
const secret = "the secret of the trigger";
const samples: readonly (readonly [SourceName, SourceSample])[] = sourceNames.flatMap((name) =>
  sources[name].samples.map((sample) => [name, sample] as const),
);
const named = samples.map(([name, sample]) => [`${name}: ${sample.title}`, name, sample] as const);
const read = (name: SourceName, delivery: InboundDelivery): ReadDelivery => sources[name].reader.read(delivery);

describe("each sample", () => {
  it.each(named)("%s is taken with its signature, and refused with any other", (_, name, sample) => {
    const { verify } = sources[name].reader;
    const delivery = sampleDelivery(sample);
    const signed = signDelivery(name, delivery, secret, now);
    expect(verify(signed, [secret], now)).toBe(true);
    expect(verify(signed, ["the next secret", secret], now)).toBe(true);
    expect(verify(signed, ["another secret"], now)).toBe(false);
    expect(verify(signed, [], now)).toBe(false);
    expect(verify(delivery, [secret], now)).toBe(false);
    // A token says who sends, not what.
    if (name === "cloudEvents") return;
    expect(verify({ ...signed, body: Buffer.concat([signed.body, Buffer.from(" ")]) }, [secret], now)).toBe(false);
  });

  it.each(named)("%s becomes the event that it says, in the documented form", (_, name, sample) => {
    const { events } = read(name, sampleDelivery(sample));
    expect(events.map((event) => event.name)).toContain(sample.event);
    for (const event of events) {
      expect(isSourceEventName(name, event.name)).toBe(true);
      expect(sourceEventSchema.strict().parse(event.event)).toEqual(event.event);
      expect(event.event).toMatchObject({ name: event.name, source: name, payload: sample.payload });
      expect(event.contentKey).toMatch(/^[0-9a-f]{64}$/u);
      expect(event.subject).not.toBe("");
    }
  });

  it.each(named)("%s has the same content under another delivery's id", (_, name, sample) => {
    const delivery = sampleDelivery(sample);
    const ids = ["request-id", "linear-delivery", "x-atlassian-webhook-identifier", "webhook-id"];
    const others = Object.fromEntries(ids.map((id) => [id, "another"]));
    const again = read(name, { ...delivery, headers: { ...delivery.headers, ...others } });
    expect(again.events).toEqual(read(name, delivery).events);
  });
});

it("has a sample for at least each first event of a source, and no two samples are the same happening", () => {
  const keys = samples.flatMap(([name, sample]) => [
    ...new Set(read(name, sampleDelivery(sample)).events.map(({ contentKey }) => contentKey)),
  ]);
  expect(new Set(keys).size).toBe(keys.length);
  const without = sourceNames.filter((name) => {
    const first = sourceEventNames[name]?.[0];
    return first !== undefined && !sources[name].samples.some(({ event }) => event === first);
  });
  expect(without).toEqual([]);
});

it("finds in a payload only what its sender wrote", () => {
  expect(at({ a: { toString: "x" } }, "a", "toString")).toBe("x");
  expect(at({ a: {} }, "a", "toString")).toBeUndefined();
  expect(at(["x"], "0")).toBeUndefined();
});

/** Values that a sender might put anywhere. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    "",
    0,
    -1,
    1e308,
    true,
    [],
    {},
    [[]],
    "\0",
    "\ud800",
    "toString",
    "__proto__",
    "x".repeat(70_000),
  ),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Paths of all values in a payload. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, item]) => pathsOf(item, [...path, name]))];
}

function replaced(value: unknown, [name, ...rest]: readonly string[], by: (old: unknown) => unknown): unknown {
  if (name === undefined) return by(value);
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === name ? replaced(item, rest, by) : item));
  const entries = Object.entries(value as Record<string, unknown>);
  return Object.fromEntries(
    entries.flatMap(([key, item]) => {
      if (key !== name) return [[key, item]];
      const made = replaced(item, rest, by);
      return made === undefined ? [] : [[key, made]];
    }),
  );
}

const mutation = fc.record({
  sample: fc.constantFrom(...samples),
  changes: fc.array(fc.tuple(fc.nat(), fc.oneof(fc.constant(undefined), odd)), { minLength: 1, maxLength: 4 }),
});

describe("whatever a sender changes of a delivery", () => {
  it("is read in the documented form or refused with a reason", () => {
    let taken = 0;
    let refused = 0;
    fc.assert(
      fc.property(mutation, ({ sample: [name, sample], changes }) => {
        let payload: unknown = sample.payload;
        for (const [index, value] of changes) {
          const paths = pathsOf(payload);
          payload = replaced(payload, paths[index % paths.length] ?? [], () => value);
        }
        const delivery = { headers: sample.headers, body: Buffer.from(JSON.stringify(payload) ?? "") };
        try {
          const { events, deliveryId } = read(name, delivery);
          for (const { event, contentKey } of events) {
            sourceEventSchema.strict().parse(event);
            const text = JSON.stringify(event);
            expect(text.isWellFormed() && !text.includes(String.raw`\u0000`)).toBe(true);
            expect([null, 64]).toContain(contentKey?.length ?? null);
          }
          expect(deliveryId?.length ?? 0).toBeLessThanOrEqual(255);
          if (events.length > 0) taken += 1;
        } catch (error) {
          if (!(error instanceof InvalidInputError)) throw error;
          refused += 1;
        }
      }),
      { numRuns: 3_000 },
    );
    // Both happen, or the property says nothing.
    expect(taken).toBeGreaterThan(300);
    expect(refused).toBeGreaterThan(300);
  });

  it.each(sourceNames)("%s refuses bodies that are no JSON object, and verifies any bytes without an error", (name) => {
    const headers = sources[name].samples[0]?.headers ?? {};
    const deep = "[".repeat(200_000) + "]".repeat(200_000);
    for (const body of ["", "{", "null", "[]", "3", "\u{feff}x", deep, `{"type":"a","event":${deep}}`]) {
      expect(() => read(name, { headers, body: Buffer.from(body) })).toThrow(InvalidInputError);
    }
    expect(() => read(name, { headers, body: Buffer.from([0xff, 0xfe, 0x7b]) })).toThrow(InvalidInputError);
    fc.assert(
      fc.property(fc.uint8Array(), fc.string(), (bytes, header) => {
        const signature = Object.fromEntries(
          Object.keys(signDelivery(name, { headers: {}, body: Buffer.from("") }, secret, now).headers).map((key) => [
            key,
            header,
          ]),
        );
        return !sources[name].reader.verify(
          { headers: { ...headers, ...signature }, body: Buffer.from(bytes) },
          [secret],
          now,
        );
      }),
    );
  });
});
