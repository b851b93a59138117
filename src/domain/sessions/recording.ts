import { isUuid } from "../fields/uuid.ts";

const extension = ".jsonl";

/** Name of the file with the recording of a session's model traffic (JSON Lines), in the folder of recordings. */
export function recordingName(sessionId: string): string {
  return `${sessionId}${extension}`;
}

/** The session whose recording a file of that folder is; null if it is another file. */
export function recordedSession(fileName: string): string | null {
  const id = fileName.endsWith(extension) ? fileName.slice(0, -extension.length) : "";
  return isUuid(id) ? id : null;
}
