import type { Database } from "../../../database/database.ts";
import { OffstageError } from "../../../domain/errors/errors.ts";
import {
  clientDocumentSchema,
  commandLineClient,
  isDocumentAddress,
  type OAuthClient,
} from "../../../domain/people/oauth-client.ts";
import { findClient } from "../../../store/oauth/clients.ts";
import type { ApiOptions } from "../../http/context.ts";

/** A program is not known, or its document can't be used; the message says why. */
export class UnknownClientError extends OffstageError {
  readonly code = "unknown_client";
}

/**
 * The program of a client id: our own command line, one that registered, or one that describes itself in a document at that address
 * (draft-ietf-oauth-client-id-metadata-document-00). The document is read each time, because a person waits for the page anyway, and
 * an address that it no longer has is refused at once.
 * @throws UnknownClientError
 */
export async function clientOf(
  { database, readClientDocument }: Pick<ApiOptions, "readClientDocument"> & { readonly database: Database },
  id: string,
): Promise<OAuthClient> {
  if (id === commandLineClient.id) return commandLineClient;
  if (!isDocumentAddress(id)) {
    const registered = await findClient(database, id);
    if (registered === null) throw new UnknownClientError("no program with this client_id has registered here");
    return registered;
  }
  const read = clientDocumentSchema.safeParse(await readDocument(readClientDocument, id));
  if (!read.success)
    throw new UnknownClientError("the program's document lacks client_id, client_name or redirect_uris");
  if (read.data.client_id !== id) throw new UnknownClientError("the program's document names another client_id");
  return { id, name: read.data.client_name, redirectUris: read.data.redirect_uris };
}

async function readDocument(read: ApiOptions["readClientDocument"], id: string): Promise<unknown> {
  try {
    return await read(id);
  } catch (error) {
    throw new UnknownClientError("the program's document can't be read", { cause: error });
  }
}
