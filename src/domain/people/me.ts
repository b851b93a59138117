import { z } from "zod";
import { scopes } from "./key.ts";

/** The caller, as the API shows it. */
export const meSchema = z.object({
  orgId: z.uuid().nullable(),
  userId: z
    .uuid()
    .nullable()
    .meta({ description: "The person who is signed in, or whose the key is; null: nobody in particular." }),
  scopes: z.array(z.enum(scopes)).meta({ description: "Everything that the caller may do, included scopes too." }),
});
/** See `meSchema`. */
export type Me = z.infer<typeof meSchema>;
