import type { Scope } from "../../domain/people/key.ts";
import { useMe } from "../query.ts";
import { useNoticeTexts } from "../texts/notices.ts";
import { useOrganizationTexts } from "../texts/organizations.ts";
import { useRegistryTexts } from "../texts/registries.ts";
import { useSettingsTexts } from "../texts/settings.ts";

/**
 * The sections of the settings in their order, as they are behind the # of an address, with the scope that each needs.
 */
const sections = [
  { id: "sessions", scope: "admin" },
  { id: "accounts", scope: "read" },
  { id: "notices", scope: "read" },
  { id: "connections", scope: "admin" },
  { id: "secrets", scope: "admin" },
  { id: "registries", scope: "admin" },
  { id: "keys", scope: "admin" },
  { id: "shares", scope: "admin" },
  { id: "sign-ins", scope: "read" },
  { id: "programs", scope: "read" },
  { id: "organizations", scope: "read" },
  { id: "data", scope: "admin" },
] as const satisfies readonly { readonly id: string; readonly scope: Scope }[];
/** See `sections`. */
export type SettingsSection = (typeof sections)[number]["id"];

/** The sections that the signed-in user may see, with their headings; none until that is known. */
export function useSettingsSections(): readonly { readonly id: SettingsSection; readonly title: string }[] {
  const texts = useSettingsTexts();
  const titles: Readonly<Record<SettingsSection, string>> = {
    sessions: texts.organization.title,
    accounts: texts.accounts.title,
    notices: useNoticeTexts().title,
    connections: texts.connections.title,
    secrets: texts.secrets.title,
    registries: useRegistryTexts().title,
    keys: texts.keys.title,
    shares: texts.shares.title,
    "sign-ins": texts.signIns.title,
    programs: texts.programs.title,
    organizations: useOrganizationTexts().yours,
    data: texts.data.title,
  };
  const { scopes = [], organizations = [] } = useMe().data ?? {};
  return sections
    .filter(({ id, scope }) => scopes.includes(scope) && (id !== "organizations" || organizations.length > 1))
    .map(({ id }) => ({ id, title: titles[id] }));
}
