import type pg from "pg";
import { InvalidInputError } from "../domain/errors/errors.ts";

const wanted =
  "listening, prepared statements and advisory locks need connections of their own: connect to PostgreSQL itself, or set pool_mode = session for this database and ignore_startup_parameters = idle_in_transaction_session_timeout";

/** Most pairs of connections to compare: a pooler that takes its servers in turn gives the same one after some. */
const comparisons = 5;

/**
 * Checks that a connection keeps its server process: a pooler such as PgBouncer in transaction or statement mode gives
 * it to the next query of any client (https://www.pgbouncer.org/features.html).
 * @throws InvalidInputError that names the setting to change
 */
export async function requireOwnConnections(pool: pg.Pool): Promise<void> {
  const one = await pool.connect();
  try {
    const first = await serverProcessOf(one);
    for (let count = 0; count < comparisons; count += 1) {
      const other = await pool.connect();
      try {
        await other.query("begin");
        // Two connections at once are never of one process, and one connection is never of two.
        const second = await serverProcessOf(other);
        const again = await serverProcessOf(one);
        await other.query("rollback");
        if (second === first || again !== first) throw pooled();
      } finally {
        other.release();
      }
    }
  } finally {
    one.release();
  }
}

/**
 * Converts the refusal of a pooler that does not pass our settings on; returns other errors unchanged.
 * @param error of a connection
 */
export function poolerError(error: unknown): unknown {
  const isRefusal = error instanceof Error && /unsupported startup parameter/iu.test(error.message);
  return isRefusal ? pooled({ cause: error }) : error;
}

function pooled(options?: ErrorOptions): InvalidInputError {
  return new InvalidInputError(
    `DATABASE_URL leads to a connection pooler, such as PgBouncer, in a mode that Offstage can't use; ${wanted}`,
    options,
  );
}

async function serverProcessOf(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid ?? 0;
}
