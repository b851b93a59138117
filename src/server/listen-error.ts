import { ConflictError, InvalidInputError } from "../domain/errors/errors.ts";

/**
 * Converts an error of listening to one that tells the operator how to fix it; returns other errors unchanged.
 * @param portVariable the setting of the port, for the message
 */
export function listenError(
  error: unknown,
  { host, port }: { readonly host: string; readonly port: number },
  portVariable: string,
): unknown {
  switch ((error as NodeJS.ErrnoException).code) {
    case "EADDRINUSE":
      return new ConflictError(
        `${portVariable}: another program listens on port ${port} of ${host}: stop it, or choose another port`,
        undefined,
        { cause: error },
      );
    case "EACCES":
      return new InvalidInputError(`${portVariable}: port ${port} needs root's rights: choose one from 1024`, {
        cause: error,
      });
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new InvalidInputError(
        `OFFSTAGE_HOST: ${host} is not an address of this machine: use 127.0.0.1 or 0.0.0.0`,
        {
          cause: error,
        },
      );
    default:
      return error;
  }
}
