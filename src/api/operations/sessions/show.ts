import type { Principal } from "../../../domain/people/key.ts";
import { sessionDetailSchema, type SessionDetail } from "../../../domain/sessions/session.ts";
import { withoutSurroundings } from "../../../domain/sessions/share.ts";
import { isFinal } from "../../../domain/sessions/status.ts";
import { unreadAmong } from "../../../store/notices/read-marks.ts";
import { estimateWait } from "../../../store/queue/queue.ts";
import { requireSession, type SessionRecord } from "../../../store/sessions/sessions.ts";
import { principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { requireUuid, answers, idParameters } from "../../http/shapes.ts";

const tags = ["Sessions"];

/** A session as the API shows it: the record with its address in the web app. @param unread whether who asks has not looked at its end */
export function toSession(options: ApiOptions, record: SessionRecord, unread = false): SessionDetail {
  return { ...record, htmlUrl: htmlUrl(options, record.id), unread };
}

/** Sessions as the API shows them to somebody. */
export async function toSessions(
  options: ApiOptions,
  principal: Principal,
  records: readonly SessionRecord[],
): Promise<SessionDetail[]> {
  const over = records.filter(({ status }) => isFinal(status)).map(({ id }) => id);
  const unread = await unreadAmong(options.database, principal, over);
  return records.map((record) => toSession(options, record, unread.has(record.id)));
}

/** A session's address in the web app. */
export function htmlUrl(options: ApiOptions, id: string): string {
  return `${options.publicUrl()}/sessions/${id}`;
}

/** @throws NotFoundError if the organization has no such session */
export function readSession({ database }: ApiOptions, principal: Principal, id: string): Promise<SessionRecord> {
  return requireSession(database, principal.organizationId, requireUuid("session", id));
}

/** Adds the operation that shows a session. */
export function addSessionView(app: App, options: ApiOptions): void {
  const { database } = options;
  app.get(
    "/session/:id",
    {
      config: { operation: { scope: "read", isShared: true } },
      schema: {
        tags,
        operationId: "getSession",
        summary: "Show a session",
        params: idParameters,
        response: answers(sessionDetailSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const session = await readSession(options, principal, request.params.id);
      if (principal.shareId !== undefined) return withoutSurroundings(toSession(options, session));
      if (session.queuePosition === null)
        return (await toSessions(options, principal, [session]))[0] ?? toSession(options, session);
      const { organizationId, queuePosition } = session;
      const maximum = options.maxRunningPerOrganization;
      const estimatedWaitSeconds = await estimateWait(database, organizationId, queuePosition, maximum);
      return { ...toSession(options, session), estimatedWaitSeconds };
    },
  );
}
