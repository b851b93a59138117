import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";

export interface Person {
  readonly name?: string;
  readonly email?: string;
  readonly email_verified?: boolean;
}

export interface TestProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** From here on it answers, and sends browsers back to these addresses alone. */
  serve(redirectUrls: readonly string[]): void;
  /** The next identity says this, under the signature of what it said. */
  forgeNext(claims: Readonly<Record<string, unknown>>): void;
  /** Answers 500 to everything until it serves again. */
  fail(): void;
  close(): Promise<void>;
}

/** A certified OpenID provider on loopback, with people whose name is their login. */
export async function startProvider(people: Readonly<Record<string, Person>>): Promise<TestProvider> {
  const down: RequestListener = (_request, response) => response.writeHead(500).end();
  let handler = down;
  let forged: Readonly<Record<string, unknown>> | null = null;
  const server = createServer((request, response) => handler(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = { clientId: "offstage", clientSecret: "provider-secret-of-this-test" };
  return {
    issuer,
    ...client,
    serve(redirectUrls) {
      const provider = new Provider(issuer, {
        clients: [{ client_id: client.clientId, client_secret: client.clientSecret, redirect_uris: [...redirectUrls] }],
        claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
        findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
        pkce: { required: () => true },
        cookies: { keys: ["a key for cookies of this test"] },
      });
      const serve = provider.callback();
      handler = (request, response) => {
        if (request.url === "/token" && forged !== null) forge(response, forged);
        if (request.url === "/token") forged = null;
        void serve(request, response);
      };
    },
    forgeNext: (claims) => void (forged = claims),
    fail: () => void (handler = down),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function forge(response: ServerResponse, claims: Readonly<Record<string, unknown>>): void {
  const end = response.end.bind(response);
  response.end = ((body: string) => {
    const answer = JSON.parse(body) as { id_token: string };
    const [header, payload = "", signature] = answer.id_token.split(".");
    const said = JSON.parse(Buffer.from(payload, "base64url").toString()) as object;
    const changed = Buffer.from(JSON.stringify({ ...said, ...claims })).toString("base64url");
    const forgedAnswer = JSON.stringify({ ...answer, id_token: [header, changed, signature].join(".") });
    response.setHeader("Content-Length", Buffer.byteLength(forgedAnswer));
    return end(forgedAnswer);
  }) as typeof response.end;
}

/**
 * What a browser does at the provider: signs in as `login`, agrees, and follows redirects until they leave it.
 * @returns the address with which it is sent back
 */
export async function passThrough(address: string, login: string): Promise<string> {
  const cookies = new Map<string, string>();
  const { origin } = new URL(address);
  let url = address;
  let form: URLSearchParams | null = null;
  for (let steps = 0; steps < 20; steps += 1) {
    if (new URL(url).origin !== origin) return url;
    const response: Response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form !== null && { method: "POST", body: form }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/u.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    form = null;
    const location = response.headers.get("location");
    if (location !== null) {
      url = new URL(location, url).href;
      continue;
    }
    const page = await response.text();
    const prompt = /name="prompt" value="(\w+)"/u.exec(page)?.[1];
    if (prompt === undefined) throw new Error(`the provider answered ${response.status}: ${page.slice(0, 500)}`);
    url = new URL(/action="([^"]+)"/u.exec(page)?.[1] ?? "", url).href;
    form = new URLSearchParams({ prompt, login, password: "any" });
  }
  throw new Error("the provider goes in circles");
}
