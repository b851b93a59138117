import { Readable } from "node:stream";
import { z } from "zod";
import { ConflictError, NotFoundError } from "../../../domain/errors/errors.ts";
import { inDirectory, lacksContent } from "../../../domain/sessions/patch.ts";
import type { SessionDetail } from "../../../domain/sessions/session.ts";
import { withoutSurroundings } from "../../../domain/sessions/share.ts";
import { markdownHead, markdownOf, readTranscript, type TranscriptEntry } from "../../../domain/sessions/transcript.ts";
import { listEvents } from "../../../store/sessions/events.ts";
import { listPatches, type StoredPatch } from "../../../store/sessions/patches.ts";
import { requireSession } from "../../../store/sessions/sessions.ts";
import { organizationOf, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { idOf, idParameters, textAnswers } from "../../http/shapes.ts";
import { toSession } from "./show.ts";

const tags = ["Sessions"];
const eventsOfPage = 500;

/** Adds the operations that give a session away as files: its changes as a patch, its transcript. */
export function addDownloadOperations(app: App, options: ApiOptions): void {
  const { database } = options;
  const open = new Set<Readable>();
  // A client that reads slowly must not keep the server from stopping: it gets a file without its end.
  app.addHook("preClose", (done) => {
    for (const file of open) file.destroy();
    done();
  });
  app.get(
    "/session/:id/patch",
    {
      config: { operation: { scope: "read", isShared: true } },
      schema: {
        tags,
        operationId: "getPatch",
        summary:
          "Download what a session changed, for `git apply`: paths of several repositories begin with their folders",
        params: idParameters,
        querystring: z.object({
          repositoryId: z.uuid().optional().meta({ description: "Only the changes of this one, from its own root." }),
        }),
        response: textAnswers({ "text/x-patch": z.string() }),
      },
    },
    async (request, reply) => {
      const id = idOf(request, "session");
      const { repositoryId } = request.query;
      const all = await listPatches(database, organizationOf(request), id);
      const patch = patchOf(id, all, repositoryId ?? null);
      return reply.headers(fileHeaders("text/x-patch", `${id}.patch`)).send(patch);
    },
  );
  app.get(
    "/session/:id/transcript",
    {
      config: { operation: { scope: "read", isShared: true } },
      schema: {
        tags,
        operationId: "getTranscript",
        summary: "Download what was said and done in a session",
        params: idParameters,
        querystring: z.object({
          format: z.enum(["markdown", "json"]).default("markdown").meta({
            description: "json: the session and the entries of its transcript, with nothing cut.",
          }),
        }),
        response: textAnswers({ "text/markdown": z.string(), "application/json": z.string() }),
      },
    },
    async (request, reply) => {
      const { organizationId, shareId } = principalOfRequest(request);
      const whole = toSession(options, await requireSession(database, organizationId, idOf(request, "session")));
      const session = shareId === undefined ? whole : withoutSurroundings(whole);
      const isJson = request.query.format === "json";
      const file = Readable.from((isJson ? jsonFile : markdownFile)(session, entriesOf(options, session)));
      open.add(file);
      file.once("close", () => open.delete(file));
      const type = isJson ? "application/json" : "text/markdown";
      // A disconnect must not leave a connection behind that waits for the next request.
      void reply.headers(fileHeaders(type, `${session.id}.${isJson ? "json" : "md"}`)).header("Connection", "close");
      return reply.send(file);
    },
  );
}

const fileHeaders = (type: string, name: string): Record<string, string> => ({
  "Content-Type": `${type}; charset=utf-8`,
  "Content-Disposition": `attachment; filename="${name}"`,
});

/**
 * One patch of a session's changes.
 * @param repositoryId null: of all repositories
 * @throws NotFoundError if the session does not have the repository
 * @throws ConflictError if not all of a change is kept, so that the patch would not apply
 */
function patchOf(id: string, all: readonly StoredPatch[], repositoryId: string | null): string {
  const wanted = repositoryId === null ? all : all.filter((each) => each.repositoryId === repositoryId.toLowerCase());
  if (repositoryId !== null && wanted.length === 0) {
    throw new NotFoundError(`session ${id} has no repository ${repositoryId}`);
  }
  for (const { name, patch, truncated } of wanted) {
    if (!truncated && !lacksContent(patch)) continue;
    const what = truncated ? "is longer than what is kept" : "has changes that could not be kept as they are";
    throw new ConflictError(`the patch of ${name} ${what}: get the session's branch from its repository`);
  }
  const inFolders = repositoryId === null && all.length > 1;
  return wanted.map(({ patch, directory }) => (inFolders ? inDirectory(patch, directory) : patch)).join("");
}

async function* entriesOf({ database }: ApiOptions, session: SessionDetail): AsyncGenerator<TranscriptEntry> {
  const reader = readTranscript();
  for (let after = session.eventsRemovedThrough; ;) {
    const page = await listEvents(database, session.organizationId, session.id, after, eventsOfPage);
    for (const event of page?.events ?? []) yield* reader.add(event);
    const last = page?.events.at(-1);
    if (last === undefined || page?.nextCursor == null) break;
    after = last.seq;
  }
  yield* reader.end();
}

async function* markdownFile(session: SessionDetail, entries: AsyncIterable<TranscriptEntry>): AsyncGenerator<string> {
  yield markdownHead(session);
  for await (const entry of entries) yield markdownOf(entry);
}

async function* jsonFile(session: SessionDetail, entries: AsyncIterable<TranscriptEntry>): AsyncGenerator<string> {
  yield `{"session":${JSON.stringify(session)},"entries":[`;
  let separator = "";
  for await (const entry of entries) {
    yield `${separator}${JSON.stringify(entry)}`;
    separator = ",";
  }
  yield "]}";
}
