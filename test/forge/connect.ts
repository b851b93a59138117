import type { deliveriesOf, Hook } from "./deliveries/deliveries.ts";
import type { TestForge } from "./server.ts";

/** The address of the API in each dialect that the forge delivers in. */
const apis = {
  github: "/api/v3",
  gitea: "/api/v1",
  gitlab: "/api/v4",
  bitbucket: "/2.0",
  bitbucketDataCenter: "/rest/api/latest",
  azure: "",
} as const;

/** A forge that an Offstage is connected with. */
export type ConnectedForge = ReturnType<typeof deliveriesOf> & {
  readonly settings: {
    readonly kind: Hook["kind"];
    readonly webUrl: string;
    readonly apiUrl: string;
    readonly token: string;
  };
  readonly hook: Hook;
};

/** Connects the forge with an Offstage, as its administrator would, and has it deliver there what happens from here on. */
export async function connectForge(
  forge: TestForge,
  { kind, url, key }: { readonly kind: Hook["kind"]; readonly url: string; readonly key: string },
): Promise<ConnectedForge> {
  // Azure DevOps checks a token in an organization, whose name is in the address.
  const webUrl = kind === "azure" ? `${forge.url}/acme` : forge.url;
  const settings = { kind, webUrl, apiUrl: `${forge.url}${apis[kind]}`, token: forge.token };
  const { token, ...address } = settings;
  const response = await fetch(`${url}/connection/create`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ ...address, credential: { type: "token", token } }),
  });
  if (!response.ok) throw new Error(await response.text());
  const made = (await response.json()) as { readonly hookUrl: string; readonly webhookSecret: string };
  const hook = { kind, url: `${url}${new URL(made.hookUrl).pathname}`, secret: made.webhookSecret };
  return { ...forge.deliverTo([hook]), settings, hook };
}
