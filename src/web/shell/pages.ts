import { useNavigate } from "@tanstack/react-router";
import type { Scope } from "../../domain/people/key.ts";
import type { IconName } from "../elements/icon.tsx";
import { useMe } from "../query.ts";
import type { Shortcut } from "./shortcuts.ts";
import { type ShellTexts, useShellTexts } from "../texts/shell.ts";

/** A page that the navigation leads to. */
interface NavigationPage {
  readonly to:
    | "/"
    | "/automations"
    | "/repositories"
    | "/ledger"
    | "/insight"
    | "/webhooks"
    | "/settings"
    | "/audit"
    | "/people"
    | "/system";
  readonly name: Exclude<keyof ShellTexts["pages"], "reference">;
  readonly icon: IconName;
  /** The scope of its operations. */
  readonly scope: Scope;
  /** After `g`, leads there. */
  readonly letter: string;
}

const pages: readonly NavigationPage[] = [
  { to: "/", name: "sessions", icon: "sessions", scope: "read", letter: "s" },
  { to: "/automations", name: "automations", icon: "automations", scope: "read", letter: "a" },
  { to: "/repositories", name: "repositories", icon: "repositories", scope: "read", letter: "r" },
  { to: "/ledger", name: "ledger", icon: "ledger", scope: "read", letter: "l" },
  { to: "/insight", name: "insight", icon: "insight", scope: "read", letter: "i" },
  { to: "/webhooks", name: "webhooks", icon: "webhooks", scope: "admin", letter: "w" },
  { to: "/people", name: "people", icon: "people", scope: "admin", letter: "p" },
  { to: "/settings", name: "settings", icon: "settings", scope: "read", letter: "t" },
  { to: "/audit", name: "audit", icon: "audit", scope: "admin", letter: "u" },
  { to: "/system", name: "system", icon: "system", scope: "admin", letter: "y" },
];

/**
 * The pages for the signed-in user. Until their scopes are known, a page that depends on them has its place and is
 * hidden: nothing moves for an admin.
 */
export function usePages(): readonly (NavigationPage & { readonly isSeen: boolean })[] {
  const me = useMe().data;
  return pages
    .filter(
      ({ scope, to }) => me === undefined || (me.scopes.includes(scope) && (to !== "/system" || me.isServerAdmin)),
    )
    .map((page) => ({ ...page, isSeen: me !== undefined || page.scope !== "admin" }));
}

/** Shortcuts to the pages. */
export function useGoTo(): Shortcut[] {
  const texts = useShellTexts();
  const navigate = useNavigate();
  return usePages()
    .filter(({ isSeen }) => isSeen)
    .map(({ to, name, letter }) => ({
      keys: `g ${letter}`,
      does: texts.keys.goTo(texts.pages[name]),
      run: () => void navigate({ to }),
      isCommand: false,
    }));
}
