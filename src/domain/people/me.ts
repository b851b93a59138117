import { z } from "zod";
import { scopes } from "./key.ts";
import { roles } from "./user.ts";

/** An organization that a person has an account in. */
export const ownOrganizationSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  role: z.enum(roles).meta({ description: "Of the person there." }),
});
/** See `ownOrganizationSchema`. */
export type OwnOrganization = z.infer<typeof ownOrganizationSchema>;

/** The caller, as the API shows it. */
export const meSchema = z.object({
  orgId: z.uuid().nullable(),
  userId: z
    .uuid()
    .nullable()
    .meta({ description: "The person who is signed in, or whose the key is; null: nobody in particular." }),
  scopes: z.array(z.enum(scopes)).meta({ description: "Everything that the caller may do, included scopes too." }),
  isServerAdmin: z
    .boolean()
    .default(false)
    .meta({ description: "Whether the caller looks after the whole server: an admin of the organization `default`." }),
  organizations: z.array(ownOrganizationSchema).default([]).meta({
    description:
      "Organizations that this browser can switch between, the present one included; none unless an identity provider signed it in.",
  }),
});
/** See `meSchema`. */
export type Me = z.infer<typeof meSchema>;
