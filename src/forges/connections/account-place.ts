import { usualAddresses } from "../../domain/repositories/connection.ts";
import type { ForgeKind } from "../../domain/repositories/repository.ts";
import type { ForgeSettings } from "../forge.ts";
import { serverOf } from "../forges.ts";

/** The forge of a person's account, and the address to which its credential is sent. */
export interface AccountPlace {
  readonly kind: ForgeKind;
  readonly webUrl: string;
  readonly apiUrl: string;
}

/** A forge that is known: the operator's, or a connection of the organization. */
export interface KnownForge {
  readonly settings: ForgeSettings;
  /** Whether the organization named it. */
  readonly isOwn: boolean;
}

/**
 * The place of an account at an address: the kind of forge and its API are those of the forge that is known there, so
 * that they are never named twice, and differently.
 * @param webUrl of a server, or of one owner on it
 * @returns why there is none, as a part of a sentence
 */
export function accountPlaceOf(webUrl: string, known: readonly KnownForge[]): AccountPlace | string {
  const wanted = webUrl.toLowerCase();
  const withApi = known.filter(hasApi);
  const [found] = withApi
    .filter(({ settings }) => isBelow(wanted, serverOf(settings)))
    .toSorted((a, b) => closeness(b, wanted) - closeness(a, wanted) || Number(b.isOwn) - Number(a.isOwn));
  if (found === undefined) {
    const servers = [...new Set(withApi.map(({ settings }) => serverOf(settings)))];
    const remedy = servers.length === 0 ? "ask an admin to connect one" : `send one of ${servers.join(", ")}`;
    return `no forge with pull requests is known at ${webUrl}: ${remedy}`;
  }
  const { kind, apiUrl } = found.settings;
  if (found.isOwn && !isNextTo(kind, found.settings)) {
    return `the connection of ${found.settings.webUrl} has its API at another host, ${new URL(apiUrl).host}, to which no person's token is sent: ask the operator of this server to configure the forge`;
  }
  return { kind, webUrl: wanted, apiUrl };
}

type SettingsWithApi = Exclude<ForgeSettings, { readonly kind: "git" }>;

function hasApi(known: KnownForge): known is KnownForge & { readonly settings: SettingsWithApi } {
  return known.settings.kind !== "git";
}

/** Whether an admin of the organization has sent the API's requests elsewhere than the forge's address says. */
function isNextTo(kind: ForgeKind, { webUrl, apiUrl }: SettingsWithApi): boolean {
  const { origin } = new URL(webUrl);
  return new URL(apiUrl).origin === origin || usualAddresses[kind].apiUrl(origin) === apiUrl;
}

function isBelow(url: string, server: string): boolean {
  return `${url}/`.startsWith(`${server.toLowerCase().replace(/\/+$/u, "")}/`);
}

/** How much of its address a forge shares with another. */
function closeness({ settings }: KnownForge, wanted: string): number {
  const own = settings.webUrl.toLowerCase();
  return isBelow(wanted, own) || isBelow(own, wanted) ? own.length : 0;
}
