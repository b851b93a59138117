import type { TestApp } from "../api/app.ts";
import { passThrough } from "./oidc-provider.ts";

/** A cookie that an answer sets, as `name=value`. */
export const cookieIn = (headers: Record<string, unknown>, name: string): string | null =>
  new RegExp(`${name}=[^;]+`, "u").exec([headers["set-cookie"]].flat().join("\n"))?.[0] ?? null;

/** A sign-in whose browser is on its way to the provider. */
export interface Begun {
  readonly address: string;
  readonly cookie: string;
}

/** Begins to sign a browser in. */
export async function beginSignIn({ app }: TestApp, method: string, next?: string): Promise<Begun> {
  const query = next === undefined ? "" : `?next=${encodeURIComponent(next)}`;
  const { headers } = await app.inject({ method: "GET", url: `/login/${method}${query}` });
  return { address: String(headers["location"]), cookie: cookieIn(headers, "offstage_sign_in") ?? "" };
}

/** Comes back from the provider, with the browser's cookie. */
export async function comeBackTo({ app }: TestApp, callback: string, cookie: string) {
  const { pathname, search } = new URL(callback);
  const { headers, statusCode } = await app.inject({
    method: "GET",
    url: `${pathname}${search}`,
    headers: { cookie },
  });
  return {
    status: statusCode,
    to: String(headers["location"]),
    session: cookieIn(headers, "offstage_session"),
    headers,
  };
}

/** Signs a browser in by OpenID Connect. */
export async function signInAt(api: TestApp, login: string, next?: string) {
  const { address, cookie } = await beginSignIn(api, "oidc", next);
  return comeBackTo(api, await passThrough(address, login), cookie);
}
