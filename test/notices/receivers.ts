import { createECDH, createPublicKey, randomBytes, verify } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { callbackify } from "node:util";
import { decrypt } from "http_ece";
import { SMTPServer } from "smtp-server";

/** A mail as a server took it. */
export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Header fields by their names in lower case, unfolded. */
  readonly headers: ReadonlyMap<string, string>;
  readonly raw: string;
  readonly isSecure: boolean;
  readonly user: string | undefined;
}

/** A real mail server on this machine. */
export interface MailServer {
  readonly port: number;
  readonly mails: ReceivedMail[];
  /** What the next mails are answered with instead of being taken. */
  readonly refusals: { readonly code: number; readonly words: string }[];
  /** Addresses for which it says nothing more, as a slow server does, until it is closed; each mail to one is counted. */
  readonly slow: Set<string>;
  waiting: number;
  close(): Promise<void>;
}

/** @param options `startTls` false: it offers no encryption */
export async function startMailServer(
  options: {
    readonly startTls?: boolean;
    readonly login?: string;
    readonly key?: string;
    readonly cert?: string;
  } = {},
): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  const refusals: { code: number; words: string }[] = [];
  const slow = new Set<string>();
  const server = new SMTPServer({
    closeTimeout: 1,
    authOptional: options.login === undefined,
    ...(options.key !== undefined && { key: options.key, cert: options.cert }),
    ...(options.startTls === false && { disabledCommands: ["STARTTLS"] }),
    onAuth: ({ username = "", password = "" }, _session, done) => {
      if (`${username}:${password}` === options.login) done(null, { user: username });
      else done(new Error("Invalid username or password"));
    },
    onRcptTo: ({ address }, _session, done) => {
      if (slow.has(address)) received.waiting += 1;
      else done();
    },
    onData: (stream, session, done) => {
      const take = async (): Promise<void> => {
        const bytes = await buffer(stream);
        const refusal = refusals.shift();
        if (refusal !== undefined) throw Object.assign(new Error(refusal.words), { responseCode: refusal.code });
        const raw = bytes.toString();
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          headers: headersOf(raw),
          raw,
          isSecure: session.secure,
          user: session.user as string | undefined,
        });
      };
      callbackify(take)(done);
    },
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const received: MailServer = {
    port: (server.server.address() as AddressInfo).port,
    mails,
    refusals,
    slow,
    waiting: 0,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return received;
}

function headersOf(raw: string): Map<string, string> {
  const [head = ""] = raw.split("\r\n\r\n");
  const lines = head.replaceAll(/\r\n[ \t]+/gu, " ").split("\r\n");
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
}

/** A notice as a browser got it. */
export interface ReceivedPush {
  readonly payload: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A browser with its push service: it decrypts what it is sent, and checks by whom. */
export interface PushReceiver {
  readonly subscription: {
    readonly endpoint: string;
    readonly keys: { readonly p256dh: string; readonly auth: string };
  };
  readonly pushes: ReceivedPush[];
  /** What the next messages are answered with instead of being taken. */
  readonly refusals: { readonly status: number; readonly headers?: Readonly<Record<string, string>> }[];
  requests: number;
  close(): Promise<void>;
}

/**
 * @param publicKey the server's, as a browser subscribes with it
 * @param tls the push service's key, and a certificate of 127.0.0.1
 */
export async function startPushReceiver(
  publicKey: () => string,
  tls: { readonly key: string; readonly cert: string },
): Promise<PushReceiver> {
  const keys = createECDH("prime256v1");
  keys.generateKeys();
  const auth = randomBytes(16);
  const pushes: ReceivedPush[] = [];
  const refusals: PushReceiver["refusals"] = [];
  const server = createServer(tls, (request, response) => {
    receiver.requests += 1;
    void take(request).then(
      (status) => {
        const refusal = refusals.shift();
        response.writeHead(refusal?.status ?? status, refusal?.headers ?? {}).end("as told");
      },
      (error: Error) => response.writeHead(400).end(error.message),
    );
  });
  async function take(request: IncomingMessage): Promise<number> {
    const body = await buffer(request);
    requireVapid(request, publicKey(), `https://${request.headers.host}`);
    if (request.headers["content-encoding"] !== "aes128gcm") throw new Error("not encrypted as RFC 8188 has it");
    const text = decrypt(body, {
      version: "aes128gcm",
      privateKey: keys,
      authSecret: auth.toString("base64url"),
    });
    if (refusals.length === 0)
      pushes.push({ payload: JSON.parse(text.toString()) as ReceivedPush["payload"], headers: request.headers });
    return 201;
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const receiver: PushReceiver = {
    subscription: {
      endpoint: `https://127.0.0.1:${port}/push/${randomBytes(8).toString("hex")}`,
      keys: { p256dh: keys.getPublicKey("base64url"), auth: auth.toString("base64url") },
    },
    pushes,
    refusals,
    requests: 0,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return receiver;
}

/** Checks who sends, as a push service does (RFC 8292). */
function requireVapid(request: IncomingMessage, publicKey: string, audience: string): void {
  const [, token = "", key = ""] =
    /^vapid t=([^,\s]+),\s*k=([\w-]+)$/iu.exec(request.headers.authorization ?? "") ?? [];
  if (key !== publicKey) throw new Error("the key is not that of the subscription");
  const [head = "", claims = "", signature = ""] = token.split(".");
  const point = Buffer.from(key, "base64url");
  const jwk = {
    kty: "EC",
    crv: "P-256",
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33).toString("base64url"),
  };
  const isSigned = verify(
    "sha256",
    Buffer.from(`${head}.${claims}`),
    { key: createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363" },
    Buffer.from(signature, "base64url"),
  );
  if (!isSigned) throw new Error("the signature is wrong");
  const { aud, exp, sub } = JSON.parse(Buffer.from(claims, "base64url").toString()) as {
    aud: string;
    exp: number;
    sub: string;
  };
  if (aud !== audience) throw new Error(`aud is ${aud} and not ${audience}`);
  if (exp * 1_000 < Date.now() || exp * 1_000 > Date.now() + 86_400_000) throw new Error("exp is not within a day");
  if (!/^(?:mailto|https?):/u.test(sub)) throw new Error(`sub is ${sub}`);
}
