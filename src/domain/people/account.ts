import { z } from "zod";
import {
  connectionHealthSchema,
  connectionStates,
  forgeAddressSchema,
  forgeTokenSchema,
  forgeUsernameSchema,
} from "../repositories/connection.ts";
import { forgeKinds } from "../repositories/repository.ts";

const token = forgeTokenSchema.meta({
  description: "A personal access token. Never shown again, and never in a sandbox.",
});
const username = forgeUsernameSchema.optional().meta({
  description:
    "Of Bitbucket, the account's e-mail address of an API token. Of Bitbucket Data Center, whose the token is. Of others none.",
});

/** Body of an account's creation. */
export const createAccountSchema = z.object({
  webUrl: forgeAddressSchema.meta({
    description:
      "The forge's address, or that of one owner on it: the longest that fits a repository counts. The server, or a connection of the organization, must know the forge.",
  }),
  token,
  username,
});

/** Body of an account's update: the new token. */
export const updateAccountSchema = z.object({ token, username });

/** A person's own account at a forge as the API shows it: without its token. */
export const accountSchema = z.object({
  id: z.uuid(),
  kind: z.enum(forgeKinds),
  webUrl: z.string(),
  apiUrl: z.string().meta({ description: "Where the token was checked, and the only address that it is sent to." }),
  name: z.string().meta({ description: "Whose the token is, as the forge says." }),
  health: connectionHealthSchema.extend({
    state: z.enum(connectionStates).meta({
      description: "`broken`: it is not used any more, until it is replaced or checked again.",
    }),
  }),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `accountSchema`. */
export type Account = z.infer<typeof accountSchema>;
