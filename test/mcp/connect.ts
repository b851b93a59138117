import type { AddressInfo } from "node:net";
import { Client, StreamableHTTPClientTransport, type OAuthClientProvider } from "@modelcontextprotocol/client";
import type { TestApp } from "../api/app.ts";

/** The two current revisions of the protocol, with the settings of the SDK's client for them. */
export const revisions = [
  ["2026-07-28", { pin: "2026-07-28" }],
  ["2025-11-25", "legacy"],
] as const;
type Mode = (typeof revisions)[number][1];

/** Has an app listen on this machine. @returns its address */
export async function listening(app: TestApp["app"]): Promise<string> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

/** A client of the protocol's own SDK, connected by streamable HTTP. */
export async function connected(
  url: string,
  options: {
    readonly mode?: Mode;
    readonly key?: string;
    readonly authProvider?: OAuthClientProvider;
    readonly headers?: Record<string, string>;
    readonly extensions?: Record<string, object>;
    /** Which server gets a request, as a balancer decides. */
    readonly route?: (target: string) => string;
    readonly onInsufficientScope?: "reauthorize" | "throw";
  } = {},
): Promise<Client> {
  const {
    mode = { pin: "2026-07-28" },
    key,
    authProvider,
    headers = {},
    extensions = {},
    route = (to) => to,
  } = options;
  const client = new Client(
    { name: "test", version: "1.0.0" },
    { versionNegotiation: { mode }, capabilities: { extensions } as object },
  );
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { ...headers, ...(key !== undefined && { Authorization: `Bearer ${key}` }) } },
    ...(authProvider !== undefined && { authProvider }),
    ...(options.onInsufficientScope !== undefined && { onInsufficientScope: options.onInsufficientScope }),
    fetch: (input, init) => fetch(route(String(input)), init),
  });
  await client.connect(transport);
  return client;
}

/** What a tool answered: the sentence of a refusal, or its facts and texts. */
export function said(answer: unknown): {
  readonly isError: boolean;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of the facts is the test's to say
  readonly facts: any;
  readonly texts: readonly string[];
} {
  const { isError, structuredContent, content } = answer as {
    readonly isError?: boolean;
    readonly structuredContent?: unknown;
    readonly content: readonly { readonly text: string }[];
  };
  return { isError: isError === true, facts: structuredContent, texts: content.map(({ text }) => text) };
}
