import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface GitHubPerson {
  readonly id: number;
  readonly login: string;
  readonly email: string;
  readonly verified: boolean;
  readonly organizations: readonly string[];
}

/** What GitHub's OAuth apps answer, to as much as is asked of it, with every check that it makes. */
export async function startGitHub(person: () => GitHubPerson) {
  const client = { id: "github-app", secret: "github-secret-of-this-test" };
  const codes = new Map<string, { challenge: string; redirect: string }>();
  const tokens = new Set<string>();
  const server = createServer((request, response) => {
    void answer(request.method ?? "", new URL(request.url ?? "/", url), request).then(
      ({ status = 200, location, body }) => {
        response.writeHead(status, { "content-type": "application/json", ...(location !== undefined && { location }) });
        response.end(JSON.stringify(body ?? {}));
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function answer(
    method: string,
    { pathname, searchParams }: URL,
    request: Parameters<typeof text>[0] & { headers: Record<string, string | string[] | undefined> },
  ): Promise<{ status?: number; location?: string; body?: unknown }> {
    if (pathname === "/login/oauth/authorize") {
      const code = randomUUID();
      const redirect = searchParams.get("redirect_uri") ?? "";
      codes.set(code, { challenge: searchParams.get("code_challenge") ?? "", redirect });
      const back = new URLSearchParams({ code, state: searchParams.get("state") ?? "" });
      return { status: 302, location: `${redirect}?${back.toString()}` };
    }
    if (pathname === "/login/oauth/access_token" && method === "POST")
      return { body: exchange(await text(request), request.headers) };
    const bearer = /^Bearer (.+)$/u.exec(String(request.headers["authorization"]))?.[1] ?? "";
    if (!tokens.has(bearer)) return { status: 401, body: { message: "Bad credentials" } };
    const { id, login, email, verified, organizations } = person();
    if (pathname === "/user") return { body: { id, login, name: `Name of ${login}` } };
    if (pathname === "/user/emails") {
      return {
        body: [
          { email: "other@other.example", primary: false, verified: true },
          { email, primary: true, verified },
        ],
      };
    }
    if (pathname === "/user/orgs") {
      const perPage = Math.min(100, Number(searchParams.get("per_page") ?? 30));
      const first = (Number(searchParams.get("page") ?? 1) - 1) * perPage;
      return { body: organizations.slice(first, first + perPage).map((name) => ({ login: name })) };
    }
    return { status: 404, body: { message: "Not Found" } };
  }

  /** GitHub says what is wrong with 200. */
  function exchange(body: string, headers: Record<string, string | string[] | undefined>): unknown {
    const form = new URLSearchParams(body);
    const basic = Buffer.from(String(headers["authorization"]).replace(/^Basic /u, ""), "base64").toString();
    const shown = form.get("client_secret") ?? decodeURIComponent(basic.slice(basic.indexOf(":") + 1));
    const known = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (shown !== client.secret) return { error: "incorrect_client_credentials" };
    if (known === undefined || known.challenge !== challenge || known.redirect !== form.get("redirect_uri")) {
      return { error: "bad_verification_code" };
    }
    const token = `gho_${randomUUID()}`;
    tokens.add(token);
    return { access_token: token, token_type: "bearer", scope: "read:user" };
  }

  return { url, client, close: () => new Promise<void>((resolve) => server.close(() => resolve())) };
}
