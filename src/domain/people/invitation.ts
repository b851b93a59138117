import { z } from "zod";
import { text } from "../fields/text.ts";
import { roles, userSchema } from "./user.ts";

/** Days for which the link of an invitation is valid. */
export const invitationDays = 7;

/** Languages in which an invitation can be mailed. */
export const invitationLanguages = ["en", "de"] as const;
/** See `invitationLanguages`. */
export type InvitationLanguage = (typeof invitationLanguages)[number];

const language = z.enum(invitationLanguages).optional().meta({ description: "Of the mail; default en." });

/** Body of an invitation. */
export const inviteUserSchema = z.object({
  name: text(200),
  email: z.email("must be an e-mail address").max(320).nullish().meta({
    description:
      "Whoever an identity provider says has this address signs in as the person invited. The link is mailed there, if the server has a mail server.",
  }),
  role: z.enum(roles),
  language,
});

/** See `inviteUserSchema`. */
export type InviteUser = z.infer<typeof inviteUserSchema>;

/** Body of a request for another link for an invited person. */
export const inviteAgainSchema = z.object({ language });

/** An invitation as the answer that has its link shows it, once. */
export const invitationSchema = z.object({
  user: userSchema,
  url: z.url().meta({ description: "Signs one browser in as this person, once." }),
  expiresAt: z.iso.datetime(),
  mailedTo: z.string().nullable().default(null).meta({
    description:
      "The address to which the link is mailed, too; `invitationMail` of the user says what came of it. null: there is no address, or the server has no mail server.",
  }),
});
