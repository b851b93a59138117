export type { OrganizationTexts } from "./en/organizations.ts";
import { english } from "./en/organizations.ts";
import { textsOf } from "./texts.ts";

/** Texts of what concerns several organizations: whoever is of more than one, and those who look after the server. */
export const useOrganizationTexts = textsOf(english, { de: () => import("./de/organizations.ts") });
