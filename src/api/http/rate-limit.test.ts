import type { FastifyReply } from "fastify";
import { expect, it, onTestFinished, vi } from "vitest";
import { TooManyRequestsError } from "../../domain/errors/errors.ts";
import type { Principal } from "../../domain/people/key.ts";
import { createRateLimit } from "./rate-limit.ts";

const principal: Principal = {
  organizationId: "organization",
  keyId: null,
  userId: null,
  scopes: ["read"],
  automationIds: null,
};

function bucket(perMinute: number) {
  let time = 0;
  const take = createRateLimit(perMinute, () => time);
  return {
    wait: (seconds: number) => (time += seconds * 1_000),
    /** @returns the headers of the answer, and whether it was refused */
    ask(who: Partial<Principal>): Record<string, string> & { refused?: string } {
      const headers: Record<string, string> = {};
      const reply = {
        headers: (more: Record<string, string>) => Object.assign(headers, more),
        header: (name: string, value: string) => (headers[name] = value),
      };
      try {
        take({ ...principal, ...who }, reply as unknown as FastifyReply);
      } catch (error) {
        if (!(error instanceof TooManyRequestsError)) throw error;
        headers["refused"] = error.message;
      }
      return headers;
    },
  };
}

it("lets a key make so many requests at once, tells what is left, and refuses the next with the time to wait", () => {
  const { ask, wait } = bucket(3);
  const key = { keyId: "one" };
  expect(ask(key)).toEqual({ "RateLimit-Limit": "3", "RateLimit-Remaining": "2", "RateLimit-Reset": "20" });
  expect([ask(key)["RateLimit-Remaining"], ask(key)["RateLimit-Remaining"]]).toEqual(["1", "0"]);
  expect(ask(key)).toMatchObject({ "Retry-After": "20", refused: expect.stringContaining("try again in 20 s") });
  wait(20);
  expect(ask(key)["refused"]).toBeUndefined();
  expect(ask(key)["refused"]).toBeDefined();
});

it("counts keys apart, and people in browsers apart", () => {
  const { ask } = bucket(1);
  for (const who of [{ keyId: "one" }, { keyId: "two" }, { userId: "ada" }, { userId: "grace" }, {}]) {
    expect([who, ask(who)["refused"]]).toEqual([who, undefined]);
    expect(ask(who)["refused"]).toBeDefined();
  }
});

it("makes no caller wait because the machine's clock is put back", () => {
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const take = createRateLimit(2);
  const reply = { headers: () => reply, header: () => reply } as unknown as FastifyReply;
  take(principal, reply);
  vi.setSystemTime(Date.now() - 3_600_000);
  take(principal, reply);
  expect(() => take(principal, reply)).toThrow("try again in 30 s");
});
