import type { z } from "zod";
import type { updateSecretSchema } from "../../domain/environments/secret.ts";
import { client } from "../query.ts";

/** Calls that only this page makes: the client comes with every page, and has no room for them. */
export const calls = {
  updateSecret: (id: string, body: z.input<typeof updateSecretSchema>) =>
    client.call("secretSchema", `/secret/${id}/update`, body),
};
