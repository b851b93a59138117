import type { ApiOptions, App } from "../../http/context.ts";
import type { EventStreams } from "../event-stream.ts";
import { addSessionChanges } from "./change.ts";
import { addSessionCreation } from "./create.ts";
import { addSessionLists } from "./list.ts";
import { addSessionProgress } from "./progress.ts";
import { addSessionView } from "./show.ts";

/** Adds the operations on the life of a session, in the order in which the reference has them. */
export function addSessionOperations(app: App, options: ApiOptions, streams: EventStreams): void {
  addSessionCreation(app, options);
  addSessionLists(app, options);
  addSessionView(app, options);
  addSessionChanges(app, options);
  addSessionProgress(app, options, streams);
}
