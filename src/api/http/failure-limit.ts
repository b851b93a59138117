import { isIP } from "node:net";
import { TooManyRequestsError } from "../../domain/errors.ts";

const windowMs = 60_000;
/** Addresses that failed long ago need not be kept. */
const pruneAbove = 10_000;

export interface FailureLimit {
  /** @throws TooManyRequestsError after too many failures from this address within a minute */
  check(address: string): void;
  fail(address: string): void;
}

/** Slows guessing down: so many failures a minute from one address, whatever was guessed. */
export function createFailureLimit(perMinute: number, now: () => number = Date.now): FailureLimit {
  const failures = new Map<string, number[]>();
  const recent = (network: string): number[] => (failures.get(network) ?? []).filter((at) => now() - at < windowMs);
  return {
    check(address) {
      const [oldest, ...others] = recent(networkOf(address));
      if (oldest === undefined || others.length + 1 < perMinute) return;
      const waitSeconds = Math.max(1, Math.ceil((oldest + windowMs - now()) / 1_000));
      throw new TooManyRequestsError(`too many failed sign-ins: try again in ${waitSeconds} s`, waitSeconds);
    },
    fail(address) {
      const network = networkOf(address);
      failures.set(network, [...recent(network), now()].slice(-perMinute));
      if (failures.size <= pruneAbove) return;
      for (const known of failures.keys()) if (recent(known).length === 0) failures.delete(known);
    },
  };
}

/** Whoever has an IPv6 address most often has 2^64 of them: those count as one. */
function networkOf(address: string): string {
  if (isIP(address) !== 6 || address.includes(".")) return address;
  const [head = "", tail = ""] = address.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const after = tail.split(":").filter((group) => group !== "");
  const zeros = address.includes("::") ? Array.from({ length: 8 - groups.length - after.length }, () => "0") : [];
  return [...groups, ...zeros, ...after].slice(0, 4).join(":");
}
