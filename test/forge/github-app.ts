import { createSign, createVerify, generateKeyPairSync, randomBytes } from "node:crypto";

/** An App that is registered at the test forge, as GitHub knows it: by number and public key. */
export interface RegisteredApp {
  readonly id: number;
  readonly publicKey: string;
  /** How far the forge's clock is ahead of this machine's. */
  readonly clockAheadMs?: number;
  /** How long the forge does not know a token that it gave. */
  readonly knowsTokensAfterMs?: number;
  /** What it was registered with. */
  readonly permissions?: Readonly<Record<string, string>>;
  readonly events?: readonly string[];
  /** On whose repositories it is installed; permissions: those that were accepted, if not all. */
  readonly installations?: readonly {
    readonly account: string;
    readonly permissions?: Readonly<Record<string, string>>;
    readonly suspended?: boolean;
  }[];
}

const longestMinutes = 10;

/** Whether this is the App's own token: signed by it (RS256), not expired, and not good for longer than GitHub allows. */
export function isAppToken(token: string, app: RegisteredApp): boolean {
  const [head = "", claims = "", signature = ""] = token.split(".");
  const verified = createVerify("RSA-SHA256").update(`${head}.${claims}`).verify(app.publicKey, signature, "base64url");
  if (!verified) return false;
  const { iss, iat, exp } = JSON.parse(Buffer.from(claims, "base64url").toString()) as {
    iss: string;
    iat: number;
    exp: number;
  };
  const now = (Date.now() + (app.clockAheadMs ?? 0)) / 1_000;
  return Number(iss) === app.id && iat <= now && exp > now && exp - now <= longestMinutes * 60;
}

export function newInstallationToken(): { token: string; expires_at: string; permissions: Record<string, string> } {
  return {
    token: `ghs_${randomBytes(18).toString("hex")}`,
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    permissions: { contents: "write", pull_requests: "write" },
  };
}

/** An App with a key pair of its own. */
export function createTestApp(id: number): RegisteredApp & { readonly privateKey: string; token(): string } {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return {
    id,
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    token() {
      const now = Math.floor(Date.now() / 1_000);
      const unsigned = `${encode({ alg: "RS256", typ: "JWT" })}.${encode({ iat: now - 60, exp: now + 500, iss: String(id) })}`;
      return `${unsigned}.${createSign("RSA-SHA256").update(unsigned).sign(privateKey, "base64url")}`;
    },
  };
}
