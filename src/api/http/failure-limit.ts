import { isIP } from "node:net";
import { TooManyRequestsError } from "../../domain/errors/errors.ts";

const windowMs = 60_000;
/** Above this number of addresses, those without recent failures are deleted. */
const pruneAbove = 10_000;

/** Limits failed attempts by address. An IPv6 /64 network counts as one address. */
export interface FailureLimit {
  /** @throws TooManyRequestsError after too many failures from this address within a minute */
  check(address: string): void;
  /** Records a failure. */
  fail(address: string): void;
}

/**
 * Makes a limit that slows down guessing.
 * @param perMinute failures per minute from one address, whatever was guessed
 * @param now a clock in milliseconds that never goes back
 */
export function createFailureLimit(perMinute: number, now: () => number = () => performance.now()): FailureLimit {
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

/** IPv6 networks usually have a /64 prefix, so one client can use 2^64 addresses: these count as one. */
function networkOf(address: string): string {
  if (isIP(address) !== 6 || address.includes(".")) return address;
  const [head = "", tail = ""] = address.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const after = tail.split(":").filter((group) => group !== "");
  const zeros = address.includes("::") ? Array.from({ length: 8 - groups.length - after.length }, () => "0") : [];
  return [...groups, ...zeros, ...after].slice(0, 4).join(":");
}
