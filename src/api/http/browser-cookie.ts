import type { FastifyRequest } from "fastify";
import type { Browser } from "../../store/people/logins.ts";
import type { ApiOptions } from "./context.ts";

const daySeconds = 24 * 60 * 60;

/**
 * Attributes of a signed-in browser's cookie: scripts can't read it, and browsers don't send it with requests from
 * other sites.
 */
export function browserCookie({ publicUrl, signInDays }: Pick<ApiOptions, "publicUrl" | "signInDays">) {
  return {
    path: "/",
    httpOnly: true,
    sameSite: "strict",
    secure: publicUrl().startsWith("https:"),
    maxAge: signInDays * daySeconds,
  } as const;
}

/** The stored record of a browser that signs in. */
export function browserOf({ signInDays }: Pick<ApiOptions, "signInDays">, request: FastifyRequest): Browser {
  return { days: signInDays, address: request.ip, userAgent: request.headers["user-agent"] ?? null };
}
