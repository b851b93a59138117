import { describe, expect, it } from "vitest";
import {
  canonicalHost,
  egressRulesFor,
  egressRuleSchema,
  parseEgressRule,
  type EgressRule,
  widenEgress,
} from "./egress.ts";

const rules = (...texts: string[]): EgressRule[] => texts.map((text) => parseEgressRule(text) as EgressRule);

describe("a rule", () => {
  it.each([
    ["example.com", "example.com", 443, true],
    ["example.com", "example.com", 80, true],
    ["example.com", "example.com", 22, false],
    ["example.com", "www.example.com", 443, false],
    ["example.com", "example.com.evil.example", 443, false],
    ["*.example.com", "www.example.com", 443, true],
    ["*.example.com", "a.b.example.com", 443, true],
    ["*.example.com", "example.com", 443, false],
    ["*.example.com", "evilexample.com", 443, false],
    ["example.com:8443", "example.com", 8443, true],
    ["example.com:8443", "example.com", 443, false],
    ["EXAMPLE.com.", "example.com", 443, true],
    ["192.0.2.7:9000", "192.0.2.7", 9000, true],
    ["[2001:db8::7]:9000", "2001:db8::7", 9000, true],
    ["db.example:5432/tcp", "db.example", 5432, true],
    ["db.example:5432/tcp", "db.example", 443, false],
  ])("%s lets %s:%i through: %s", (rule, host, port, expected) => {
    expect(egressRulesFor(rules(rule), host, port).length === 1).toBe(expected);
  });

  it.each([
    "",
    "*",
    "*.",
    "http://example.com",
    "example.com/x",
    "a b",
    "user@example.com",
    "example.com:0",
    "example.com:70000",
    "example.com/tcp",
    "example.com:443/udp",
    "example.com:443/tcp/",
    "-x.example",
  ])("is not %j", (text) => {
    expect(parseEgressRule(text)).toBeNull();
    expect(egressRuleSchema.safeParse(text).success).toBe(false);
  });
});

it.each([
  ["db.example:5432/tcp", true],
  ["[2001:db8::7]:22/TCP", true],
  ["db.example:5432", false],
  ["db.example", false],
])("%s lets any protocol through: %s", (rule, anyProtocol) => {
  expect(rules(rule)).toMatchObject([{ anyProtocol }]);
});

it.each([
  ["EXAMPLE.com.", "example.com"],
  ["0x7f.1", "127.0.0.1"],
  ["2130706433", "127.0.0.1"],
  ["0177.0.0.1", "127.0.0.1"],
  ["[::FFFF:127.0.0.1]", "::ffff:7f00:1"],
  ["bücher.example", "xn--bcher-kva.example"],
  ["a b", null],
  ["exa%6dple.com", "example.com"],
])("a host written %j is %j", (written, canonical) => {
  expect(canonicalHost(written)).toBe(canonical);
});

it("is widened by hosts and presets of further lists, and never narrowed", () => {
  const none = { open: false, rules: [] };
  expect(widenEgress(none, [])).toEqual(none);
  const widened = widenEgress(none, ["registries", "git.example"]);
  expect(widened.open).toBe(false);
  for (const host of ["registry.npmjs.org", "pypi.org", "git.example"]) {
    expect(egressRulesFor(widened.rules, host, 443)).toHaveLength(1);
  }
  expect(egressRulesFor(widened.rules, "registries", 443)).toEqual([]);
  expect(widenEgress(widened, ["open"]).open).toBe(true);
  expect(widenEgress({ open: true, rules: [] }, ["registries"]).open).toBe(true);
});
