import { NotFoundError } from "../domain/errors/errors.ts";

/**
 * The row of what a request names by its id.
 * @param noun what it is, for the error: `webhook`
 * @throws NotFoundError if there is no row
 */
export function one<Row>([row]: readonly Row[], noun: string, id: string): Row {
  if (row === undefined) throw new NotFoundError(`${noun} ${id} was not found`);
  return row;
}
