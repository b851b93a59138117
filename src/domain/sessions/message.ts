import { z } from "zod";

/** Where a message is: `pending`, no turn has taken it, so it can be withdrawn; `running`, a turn is at it; then one of the others. */
export const messageStatuses = ["pending", "running", "done", "withdrawn"] as const;

/** A message to a session: its prompt first, then follow-ups. */
export const messageSchema = z.object({
  id: z.uuid(),
  text: z.string(),
  status: z.enum(messageStatuses),
  createdAt: z.iso.datetime(),
});
/** See `messageSchema`. */
export type Message = z.infer<typeof messageSchema>;
