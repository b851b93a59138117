import { useNavigate, useSearch } from "@tanstack/react-router";
import type { SessionStatus } from "../../domain/sessions/status.ts";
import { searchOfPage } from "../elements/search-of-page.ts";

/** The list's filters, as in the address. */
export interface HomeFilter {
  readonly q?: string | undefined;
  readonly status?: SessionStatus | undefined;
  /** Id of a user or key; `me`: the signed-in user. */
  readonly by?: string | undefined;
  readonly repository?: string | undefined;
  readonly automation?: string | undefined;
  readonly label?: string | undefined;
  /** Those that were put away, instead of the others. */
  readonly archived?: true | undefined;
  /** Those with an outcome that the signed-in user has not looked at. */
  readonly unread?: true | undefined;
}

/** The filter, and a function that changes parts of it. */
export function useSessionFilter(): [HomeFilter, (changes: HomeFilter, replace?: boolean) => void] {
  const given = useSearch({ from: "/", shouldThrow: false });
  const filter = searchOfPage(given);
  const navigate = useNavigate();
  // Undefined values are removed from the address.
  const change = (changes: HomeFilter, replace = true): void =>
    void navigate({ to: "/", search: { ...filter, ...changes }, replace, resetScroll: false });
  return [filter, change];
}

/** Whether one list of what was found is shown, instead of groups: the newest first, whatever they need. */
export function isFlat({ q, status, archived, unread }: HomeFilter): boolean {
  return q !== undefined || status !== undefined || archived === true || unread === true;
}
