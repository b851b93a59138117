import { z } from "zod";
import { text } from "../fields/text.ts";
import { roles, userSchema } from "./user.ts";

/** Days for which the link of an invitation is valid. */
export const invitationDays = 7;

/** Body of an invitation. */
export const inviteUserSchema = z.object({
  name: text(200),
  email: z
    .email("must be an e-mail address")
    .max(320)
    .nullish()
    .meta({ description: "Whoever an identity provider says has this address signs in as the person invited." }),
  role: z.enum(roles),
});

/** See `inviteUserSchema`. */
export type InviteUser = z.infer<typeof inviteUserSchema>;

/** An invitation as the answer that has its link shows it, once. */
export const invitationSchema = z.object({
  user: userSchema,
  url: z.url().meta({ description: "Signs one browser in as this person, once." }),
  expiresAt: z.iso.datetime(),
});
