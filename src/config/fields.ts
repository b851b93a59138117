import { z } from "zod";
import { modelPatternSchema } from "../domain/agents/model.ts";
import { parseEgressRule, type EgressRule } from "../domain/environments/egress.ts";
import { isDirectEntry } from "../outbound/proxies.ts";

// Schemas of variables' values, as an operator writes them in the environment.

/** `true`, `false`, `1` or `0`; default false. */
export const flag = z
  .enum(["true", "false", "1", "0"])
  .transform((value) => value === "true" || value === "1")
  .default(false);
/** A list of hosts that sandboxes may reach: `a.example, *.b.example:8443`. */
export const egressList = z
  .string()
  .transform((value, context): EgressRule[] =>
    value
      .split(/[\s,]+/u)
      .filter((entry) => entry !== "")
      .flatMap((entry) => {
        const rule = parseEgressRule(entry);
        if (rule !== null) return rule;
        context.addIssue(
          `contains ${entry}: write <host>, *.<host>, <host>:<port> or <host>:<port>/tcp, separated by commas`,
        );
        return [];
      }),
  )
  .default([]);
/** A list of model patterns: `claude-*, gpt-5*`; default all. */
export const modelList = z
  .string()
  .transform((value) => value.split(/[\s,]+/u).filter((pattern) => pattern !== ""))
  .pipe(z.array(modelPatternSchema))
  .default(["*"]);
/** A list of permits, written as the gateway's rejections name them: `tool:web_search*, source:url`. */
export const permitList = z
  .string()
  .transform((value) => value.split(/[\s,]+/u).filter((permit) => permit !== ""))
  .pipe(
    z.array(
      z
        .string()
        .max(200)
        .regex(
          /^(?:beta|block|edit|field|inference_geo|modality|model|source|speed|tier|tool):[\w.:/-]*\*?$/u,
          "must be written as a refusal names it, such as tool:web_search or tool:web_search*",
        ),
    ),
  )
  .default([]);
/** The address of an HTTP proxy, with credentials or without; `http://` if it names no protocol. */
export const proxyAddress = z
  .string()
  .transform((value) => (value.includes("://") ? value : `http://${value}`).replace(/\/+$/u, ""))
  .pipe(z.url({ protocol: /^https?$/u, error: "must be an http:// or https:// address" }))
  .refine(hasDecodableUser, "has a % in its user or password that begins no escape: write it as %25");
/**
 * A list of places that are contacted without a proxy, as curl reads NO_PROXY. What is none is left out: many programs read the
 * variable, and people write paths of sockets and the like into it.
 */
export const directList = z
  .string()
  .transform((value): string[] =>
    value
      .toLowerCase()
      .split(/[\s,]+/u)
      .filter((entry) => entry !== "" && isDirectEntry(entry)),
  )
  .default([]);
/** A list of words, separated by commas or blanks. */
export const names = z
  .string()
  .transform((value) => value.split(/[\s,]+/u).filter((name) => name !== ""))
  .default([]);
/**
 * HTTP headers in OpenTelemetry's format (https://opentelemetry.io/docs/specs/otel/protocol/exporter/):
 * `name=value,name=value`, percent-encoded.
 */
export const headerList = z
  .string()
  .transform((value, context): Record<string, string> => {
    const entries = value.split(",").filter((entry) => entry.trim() !== "");
    const pairs = entries.map((entry) => /^\s*([!#$%&'*+.^`|~\w-]+)\s*=\s*(.*?)\s*$/u.exec(entry));
    if (pairs.some((pair) => pair === null)) context.addIssue("must be written <name>=<value>, separated by commas");
    return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? "", decoded(pair?.[2] ?? "")]));
  })
  .default({});
/**
 * The address of an identity provider, or of another service that gets a token. It must use HTTPS, unless it is on this
 * machine, so that its answers can't be changed on the way.
 */
export const signInUrl = z
  .url()
  .transform((value) => value.replace(/\/+$/u, ""))
  .refine((value) => {
    const { protocol, hostname } = new URL(value);
    return protocol === "https:" || (protocol === "http:" && ["127.0.0.1", "[::1]", "localhost"].includes(hostname));
  }, "must be an https:// address");
/** A range of user ids without accounts, written `first-last`, from 1000. */
export const uidRange = z
  .string()
  .regex(/^\d{1,10}-\d{1,10}$/u, "must be written <first>-<last>")
  .transform((value) => {
    const [first = 0, last = 0] = value.split("-").map(Number);
    return { first, last };
  })
  .refine(({ first, last }) => first >= 1_000 && first <= last && last < 2 ** 32 - 1, "must be user ids from 1000 on");
/** A whole number from `minimum` to `maximum`; `byDefault` if it is not set. */
export const integer = (minimum: number, maximum: number, byDefault: number) =>
  z.coerce.number().int().min(minimum).max(maximum).default(byDefault);
/** A JSON text whose value matches `schema`. */
export const json = <T extends z.ZodType>(schema: T) =>
  z
    .string()
    .transform((value, context): unknown => {
      try {
        return JSON.parse(value);
      } catch {
        context.addIssue("must be JSON");
        return z.NEVER;
      }
    })
    .pipe(schema);

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function hasDecodableUser(address: string): boolean {
  const url = URL.parse(address);
  if (url === null) return true;
  try {
    decodeURIComponent(`${url.username}${url.password}`);
    return true;
  } catch {
    return false;
  }
}
